# The images of Oku: one target each for coordinator, worker and server; `./task images` builds all three.
#
# All packages are fetched or built once, in `wheels`, and checked against the hashes in requirements/. The
# images share a virtual environment with what requirements/image.txt names, and nothing that builds or downloads.
# Any Python from 3.11 on will do that has venv, pip and ensurepip.
ARG PYTHON_IMAGE=python:3.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS base
RUN useradd --no-log-init --uid 10001 --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin oku \
    && install -d -m 0700 -o oku -g oku /data /counts
# Bytecode is there already, and the root file system may be read-only.
ENV PATH=/opt/oku/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OKU_LOG_FORMAT=json

FROM base AS wheels
WORKDIR /build
COPY requirements/tools.txt requirements/image.txt requirements/
RUN python3 -m venv /opt/tools \
    && /opt/tools/bin/pip install --no-cache-dir --quiet --require-hashes -r requirements/tools.txt \
    && /opt/tools/bin/pip download --no-cache-dir --quiet --only-binary :all: --require-hashes \
        --dest wheels -r requirements/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY coordinator coordinator
COPY workers workers
COPY server server
COPY cli cli
# The build backend is among the tools: nothing is downloaded here.
RUN /opt/tools/bin/python -I -m hatchling build --target wheel --directory own

FROM wheels AS venv
# The generated classes of the Kubernetes client are never loaded: 50 MB of bytecode less.
RUN python3 -m venv --without-pip /opt/oku \
    && pip="/opt/tools/bin/pip --python /opt/oku/bin/python install --quiet --no-cache-dir --no-index" \
    && $pip --find-links wheels --require-hashes -r requirements/image.txt \
    && $pip --no-deps own/oku-*.whl \
    && find /opt/oku -regex '.*/kubernetes/.*/\(api\|models\)/__pycache__' -prune -exec rm -r {} + \
    && /opt/oku/bin/python -c "import oku_coordinator.kube.facade" \
    && /opt/oku/bin/oku --version

FROM base AS image
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.vendor=Oku
COPY LICENSE /usr/share/doc/oku/LICENSE
USER 10001:10001
WORKDIR /data
STOPSIGNAL SIGTERM

FROM image AS coordinator
LABEL org.opencontainers.image.title="Oku coordinator" \
      org.opencontainers.image.description="Keeps the ledger, deals out the ranges of runs, answers the HTTP API"
COPY --from=venv /opt/oku /opt/oku
ENV OKU_HOST="*" OKU_PORT=8700 OKU_DATA_DIR=/data
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-I", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"OKU_PORT\"]}/healthz', timeout=4)"]
ENTRYPOINT ["oku", "coordinator"]

FROM image AS worker
LABEL org.opencontainers.image.title="Oku worker" \
      org.opencontainers.image.description="Takes leases from the broker, sends their requests, reports them"
COPY --from=venv /opt/oku /opt/oku
# A worker listens to nothing. One that is stuck ends itself, and the coordinator hears of one that is dead;
# what is left to ask is whether it could reach the broker at all.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-I", "-c", "import os, socket, urllib.parse as p; u = p.urlsplit(os.environ['OKU_BROKER_URL']); socket.create_connection((u.hostname, u.port or (5672 if u.scheme == 'amqp' else 5671 if u.scheme == 'amqps' else 6379)), 4)"]
ENTRYPOINT ["oku", "worker"]

FROM image AS server
LABEL org.opencontainers.image.title="Oku delay server" \
      org.opencontainers.image.description="Answers GET /NAME after a delay, and counts the requests of each run"
COPY --from=venv /opt/oku /opt/oku
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s \
    CMD ["python", "-I", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/-/healthz', timeout=4)"]
ENTRYPOINT ["oku", "server"]
CMD ["--host", "*", "--port", "8080", "--counts-dir", "/counts"]
