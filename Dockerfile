# The image of Oku: the command `oku`, whose arguments say what it is. `./task image` builds it.
#
# Everything is checked against the hashes in requirements/; what builds or downloads stays in the stages before
# the last. A change of the code makes one small layer anew. The base may be any Python from 3.11 on with venv
# and pip that has its modules in `lib`; if it has no C compiler or no Python.h, then apt has to have them.
ARG PYTHON_IMAGE=python:3.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS tools
RUN command -v cc >/dev/null || set -- gcc libc6-dev; \
    test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" || set -- "$@" python3-dev; \
    test $# = 0 || { apt-get update -qq && apt-get install -qq --yes --no-install-recommends "$@" >/dev/null; }
WORKDIR /build
COPY requirements/tools.txt requirements/
RUN python3 -m venv /opt/tools \
    && /opt/tools/bin/pip install --quiet --no-cache-dir --require-hashes -r requirements/tools.txt

FROM tools AS dependencies
COPY requirements/image.txt requirements/
# Left out: the generated classes of the Kubernetes client, which are never loaded (50 MB, and as much bytecode),
# and symbols for debuggers (25 MB). Bytecode that is not checked against its source needs no times of files.
RUN python3 -m venv --without-pip /opt/oku \
    && /opt/tools/bin/pip --python /opt/oku/bin/python install --quiet --no-cache-dir --no-compile --no-deps \
        --only-binary :all: --require-hashes -r requirements/image.txt \
    && find /opt/oku -regex '.*/kubernetes/\(aio/\)?client/\(api\|models\)/.*' ! -name __init__.py -delete \
    && find /opt/oku -name '*.so' -exec strip --strip-unneeded {} + \
    && /opt/oku/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/oku/lib

FROM dependencies AS package
COPY hatch_build.py pyproject.toml README.md LICENSE ./
COPY core/src core/src
COPY coordinator/src coordinator/src
COPY workers/src workers/src
COPY server/src server/src
COPY scenarios/src scenarios/src
COPY cli/src cli/src
RUN /opt/tools/bin/python -I -m hatchling build --target wheel --directory wheel >/dev/null \
    && /opt/tools/bin/pip --python /opt/oku/bin/python install --quiet --no-index --no-deps --no-compile \
        --prefix /package wheel/oku-*.whl \
    && /opt/oku/bin/python -m compileall -q --invalidation-mode unchecked-hash -s /package -p /opt/oku /package/lib
# Nothing that is imported is among what is left out.
RUN cp -r /package/. /opt/oku \
    && /opt/oku/bin/python -I -c "import importlib, pkgutil; \
rooms = ('oku_core', 'oku_coordinator', 'oku_workers', 'oku_server', 'oku', 'oku_cli'); \
paths = [(room + '.', importlib.import_module(room).__path__) for room in rooms]; \
[importlib.import_module(each.name) for room, path in paths for each in pkgutil.walk_packages(path, room) \
if not each.name.startswith('oku.locust_host')]" \
    && /opt/oku/bin/python -I -c "import gevent.monkey; gevent.monkey.patch_all(); import locust, locust.contrib.fasthttp"

FROM ${PYTHON_IMAGE}
# Whoever runs it, as any user, may write to /data, which is a volume if its files are to stay.
RUN useradd --no-log-init --uid 10001 --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin oku \
    && install -d -m 1777 /data
# A container that listens to itself only is of no use. Bytecode is there already.
ENV PATH=/opt/oku/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OKU_HOST="*" \
    OKU_IN_CONTAINER=true
COPY --from=dependencies /opt/oku /opt/oku
COPY --from=package /package /opt/oku
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Oku" \
      org.opencontainers.image.description="Makes an exactly known number of HTTP requests, and accounts for each once" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.vendor=Oku
USER 10001:10001
WORKDIR /data
EXPOSE 8700 8700/udp 8080
ENTRYPOINT ["oku"]
CMD ["--help"]
