"""From rows to numbers, tables, figures and a report. Pure: frames in, frames and text out."""
