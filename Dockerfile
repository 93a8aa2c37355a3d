# The image of bespeak. Mount a deployment at /service, or build an image on top of this one.
FROM python:3.13-slim

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY examples ./examples
COPY tests/documents ./tests/documents
RUN pip install --no-cache-dir '.[metrics,postgres]' \
    && rm -rf /src \
    && useradd --uid 10001 --create-home bespeak \
    && install -d -o bespeak /service

USER bespeak
WORKDIR /service
EXPOSE 4480 8080 9464
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:9464/healthz', timeout=2)"]
ENTRYPOINT ["bespeak"]
CMD ["serve", "/service", "--operations", "127.0.0.1:9464"]
