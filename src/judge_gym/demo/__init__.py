"""Evidence and studies that are shipped: fictional countries, written for this project."""
