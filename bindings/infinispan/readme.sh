#!/usr/bin/env bash
# Runs the README's first program in an empty project: readme.sh DIRECTORY MAVEN_REPOSITORY. The project has the README's own pom
# fragment, program and configuration, and what it prints is compared with what the README says.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
project=$1 repository=$2

# The block of the README behind a line that has MARK: block MARK.
block() { awk -v mark="$1" 'index($0, mark) { found = 1 } found && /^```/ { n++; next } found && n == 1 { print } n == 2 { exit }' README.md; }

rm -rf "$project"
mkdir -p "$project/src/main/java" "$project/src/main/resources"
{
    cat <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>reader</groupId>
  <artifactId>reader</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
  </properties>
  <dependencies>
POM
    block '<!-- readme: dependencies -->'
    echo '  </dependencies>'
    echo '</project>'
} >"$project/pom.xml"
block '<!-- readme: program -->' >"$project/src/main/java/Trees.java"
block '<!-- readme: configuration -->' >"$project/src/main/resources/trees.xml"
block '<!-- readme: output -->' >"$project/expected"
cd "$project"
mvn -q -B -ntp "-Dmaven.repo.local=$repository" compile dependency:build-classpath -Dmdep.outputFile=classpath
for run in first second; do
    timeout 60 java -cp "target/classes:$(cat classpath)" Trees 2>log >printed || { cat log; exit 1; }
    diff expected printed || { echo "the README's program printed something else on its $run run"; exit 1; }
done
echo "the README's program printed what the README says, twice"
