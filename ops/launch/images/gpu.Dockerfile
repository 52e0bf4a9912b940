# Nodes with GPUs: policies and the trainer. In a clone:
#   docker build -f ops/launch/images/gpu.Dockerfile -t millrace:gpu .
FROM python:3.11-slim-bookworm
# Kernels are compiled for the GPU that is there, when they are first used.
RUN apt-get update -q && apt-get install -q -y --no-install-recommends gcc g++ && rm -rf /var/lib/apt/lists/*
ENV PYTHONUNBUFFERED=1
WORKDIR /opt/millrace
COPY pyproject.toml README.md ./
COPY schemas schemas
COPY bus bus
COPY agents agents
COPY browser_workers browser_workers
COPY judges judges
COPY trainer trainer
COPY ops ops
RUN sh ops/launch/images/install.sh policy,trainer
USER 10001:10001
ENTRYPOINT ["millrace"]
