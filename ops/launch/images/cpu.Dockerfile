# Nodes without a GPU: browsers, feeder, judges, archiver, monitor, and nats-server. In a clone:
#   docker build -f ops/launch/images/cpu.Dockerfile -t millrace:cpu .
FROM python:3.11-slim-bookworm
ENV PLAYWRIGHT_BROWSERS_PATH=/opt/browsers PYTHONUNBUFFERED=1
WORKDIR /opt/millrace
COPY pyproject.toml README.md ./
COPY schemas schemas
COPY bus bus
COPY agents agents
COPY browser_workers browser_workers
COPY judges judges
COPY trainer trainer
COPY ops ops
RUN sh ops/launch/images/install.sh browser,feeder,judge,archive,monitor,miniwob \
 && playwright install --with-deps --only-shell chromium && rm -rf /var/lib/apt/lists/*
# Whoever runs it needs a seccomp profile that lets Chromium make its sandbox: millrace launch --with kubernetes writes one.
USER 10001:10001
ENTRYPOINT ["millrace"]
