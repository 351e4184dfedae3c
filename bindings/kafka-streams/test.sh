#!/usr/bin/env bash
# Builds the stores, runs Kafka's suites and our tests, the README's program in an empty project, and a small word count over a broker.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
need_build_tools
command -v javac >/dev/null || apt_install openjdk-17-jdk-headless
command -v mvn >/dev/null || apt_install maven

bindings/java/build.sh
target=$(target_dir)/bindings-kafka-streams
here=$PWD/bindings/kafka-streams
mvn=(mvn -q -B -ntp)
status=0

# Tests, then the jar with its documentation, into the local repository.
cd "$here"
rm -rf "$target/surefire-reports"
timeout 1500 "${mvn[@]}" -Desker.target="$target" install javadoc:javadoc >"$target.log" 2>&1 || {
    status=1
    grep -v '^[[:space:]]*at ' "$target.log" | tail -n 60
}
# The seeds of random tests, and each class's own line.
grep -h -- '-Desker.seed=' "$target.log" || true
cat "$target"/surefire-reports/*.txt 2>/dev/null | grep 'Tests run' || status=1

# The README's program, in a project that has nothing else, prints what the README says.
project=$target/first
rm -rf "$project"
mkdir -p "$project/src/main/java"
awk '/^```java$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$project/src/main/java/First.java"
awk '/^It prints$/ { wait = 1 } /^```$/ && wait { on = !on; if (!on) exit; next } on' README.md >"$project/expected"
dependency=$(awk '/^<dependency>$/, /^<\/dependency>$/' README.md)
cat >"$project/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>first</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    $dependency
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-streams</artifactId>
      <version>4.3.1</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-streams-test-utils</artifactId>
      <version>4.3.1</version>
    </dependency>
  </dependencies>
  <build>
    <pluginManagement>
      <plugins>
        <plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
        <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin>
        <plugin><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version></plugin>
      </plugins>
    </pluginManagement>
  </build>
</project>
END
(
    cd "$project"
    "${mvn[@]}" compile dependency:build-classpath -Dmdep.outputFile=classpath
    java -cp "target/classes:$(cat classpath)" First 2>err | diff expected - && echo "README: the first program prints what it should"
) || { status=1; tail -n 20 "$project/err" 2>/dev/null || true; }

# The benchmark compiles and runs, at a size that says nothing.
bench/run.sh 2000 || status=1

# A word count over a broker; at size in a campaign, beside RocksDB's store.
if [ "${ESKER_CAMPAIGN:-}" = 1 ]; then
    ESKER_BUILT=1 RECORDS=${RECORDS:-10000000} WORDS=${WORDS:-1000000} STORES="esker rocksdb" LIMIT_SECONDS=1500 ./wordcount.sh || status=1
else
    ESKER_BUILT=1 RECORDS=20000 WORDS=4000 ./wordcount.sh || status=1
fi
exit $status
