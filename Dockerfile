# A lab in a container; docs/install.md shows how to build and start it.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY src ./src
# --build-arg JUDGE_GYM_COMMIT=$(git rev-parse --short=12 HEAD): what `judge-gym --version` says.
ARG JUDGE_GYM_COMMIT=""
RUN pip install --no-cache-dir --prefix=/installed -c constraints.txt ".[providers,suites]"

FROM python:3.11-slim
# Code suites run in bubblewrap; where the container may make no namespaces, they refuse to run.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 lab \
    && install -d -o lab -g lab /lab
COPY --from=build /installed /usr/local
USER 1000
WORKDIR /lab
VOLUME /lab
EXPOSE 8642
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8642/api/health', timeout=5)"]
ENTRYPOINT ["judge-gym"]
CMD ["lab", "--host", "0.0.0.0", "--allow-host", "localhost"]
