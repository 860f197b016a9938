# The command `aegis` in an image: docker run --rm -v "$PWD:/data" aegis advise table.csv -p policy.yaml
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE NOTICE constraints.txt ./
COPY src ./src
RUN python -m venv /opt/aegis \
 && /opt/aegis/bin/pip install --no-cache-dir --constraint constraints.txt ".[ml,postgres,service]"

FROM python:3.12-slim
COPY --from=build /opt/aegis /opt/aegis
RUN useradd --create-home aegis && mkdir /objects && chown aegis /objects
ENV PATH="/opt/aegis/bin:$PATH"
USER aegis
WORKDIR /data
ENTRYPOINT ["aegis"]
CMD ["--help"]
