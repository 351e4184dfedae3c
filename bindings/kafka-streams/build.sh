#!/usr/bin/env bash
# Builds the Java binding and the jar of the stores, without tests, and installs both into the local Maven repository.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
bindings/java/build.sh
target=$(target_dir)/bindings-kafka-streams
cd bindings/kafka-streams
mvn -q -B -ntp -Desker.target="$target" -Dmaven.test.skip=true "$@" install
