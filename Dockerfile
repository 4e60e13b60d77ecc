# The operator's image: no compiler, no pip of its own use, no root; nothing is written at run time.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python -m venv --without-pip /opt/venv
# Wheels only, each checked against the lock: nothing is built from a package's sources.
COPY hack/requirements/runtime.txt hack/requirements/build.txt ./
RUN pip --python /opt/venv/bin/python install --require-hashes --only-binary :all: --no-compile \
        --requirement runtime.txt \
    && pip install --require-hashes --only-binary :all: --requirement build.txt
COPY setup.cfg setup.py LICENSE README.md ./
COPY operator/ operator/
RUN pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
    && pip --python /opt/venv/bin/python install --no-deps --no-compile wheels/*.whl
# `python -m operator` needs its folder, but not a second copy of the packages.
RUN mkdir -p /app/operator \
    && cp operator/__init__.py operator/__main__.py /app/operator/ \
    && python -m compileall -q -j 0 /opt/venv/lib /app

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="webapp-operator" \
      org.opencontainers.image.description="Keeps a Deployment for every WebApp" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
# PYTHONPATH makes /app/operator the module that `python -m operator` runs; it stands in for the standard
# library's module of that name. With PYTHONSAFEPATH no working directory can shadow anything.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /app
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
ENTRYPOINT ["python", "-m", "operator"]
