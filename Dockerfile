# The program alone, static: docs/install.md. Rust 1.89 is the rust-version of Cargo.toml.
FROM rust:1.89-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends musl-tools \
    && rustup target add x86_64-unknown-linux-musl
WORKDIR /source
COPY . .
RUN cargo build --release --locked --target x86_64-unknown-linux-musl -p polypath-cli

FROM scratch
COPY --from=build /source/target/x86_64-unknown-linux-musl/release/polypath /polypath
ENV XDG_CONFIG_HOME=/config
VOLUME ["/config", "/files"]
WORKDIR /files
EXPOSE 9899/udp
ENTRYPOINT ["/polypath"]
