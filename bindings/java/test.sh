#!/usr/bin/env bash
# Builds the library and the jar, tests them, also with the JVM's own checks of native code, and runs the README's program in an
# empty project that depends on the jar. What is missing is installed with apt. ESKER_QUICK=1: only the tests, of a jar that is built
# for them.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
need_build_tools
command -v javac >/dev/null || apt_install openjdk-17-jdk-headless
command -v mvn >/dev/null || apt_install maven

target=$(target_dir)
out=$target/bindings-java
repository=${ESKER_MAVEN_REPOSITORY:-$HOME/.m2/repository}
maven=(mvn -B -ntp "-Dmaven.repo.local=$repository" "-Desker.native=$out/native")
cd bindings/java

if [ -n "${ESKER_QUICK:-}" ]; then
    out=$target/bindings/java
    # A repository of its own: what is built for tests is nothing to install where others find it.
    repository=$out/repository
    ESKER_PROFILE=dev ESKER_MAVEN_REPOSITORY=$repository ./build.sh
    rm -rf "$out/classes/surefire-reports"
    timeout --kill-after=10 900 mvn -q -B -ntp -Dstyle.color=never "-Dmaven.repo.local=$repository" "-Desker.native=$out/native" \
        "-Desker.target=$out/classes" verify
    grep -h 'Tests run' "$out"/classes/surefire-reports/*.txt
    exit
fi

status=0
failed() { echo "FAILED: $*" >&2; status=1; }

cargo fmt --check --manifest-path native/Cargo.toml || failed "cargo fmt"
export CARGO_TARGET_DIR=$target
cargo clippy -q --release --locked --all-targets --manifest-path native/Cargo.toml -- -D warnings || failed clippy
cargo test -q --release --locked --manifest-path native/Cargo.toml || failed "the tests of the native part"
unset CARGO_TARGET_DIR
ESKER_MAVEN_REPOSITORY=$repository ./build.sh || { failed build.sh; exit 1; }

# The last line of what ran the tests, which must say that some ran and none failed.
ran() {
    sed $'s/\e\\[[0-9;]*m//g' "$1" | grep -E 'Tests run: [1-9][0-9]*, Failures: 0, Errors: 0' | grep -v 'Time elapsed' | tail -n 1 | grep .
}

say "mvn verify"
log=$out/verify.log
if timeout --kill-after=10 1500 "${maven[@]}" "-Desker.target=$out/classes" verify >"$log" 2>&1; then
    ran "$log" || failed "no test ran"
else
    grep -v '^.INFO' "$log"
    failed "mvn verify"
fi

# The JVM looks at each call of native code: arguments, exceptions that nobody asked for, references that were not given back.
say "the same with -Xcheck:jni"
rm -rf "$out/classes/surefire-reports"
log=$out/checked.log
checked='BulkLoadTest,CursorTest,LentTest,MisuseTest,ModelTest,StoreTest'
if ESKER_CAMPAIGN=0 timeout --kill-after=10 1500 "${maven[@]}" "-Desker.target=$out/classes" -Desker.jvm=-Xcheck:jni \
    "-Dtest=$checked" surefire:test >"$log" 2>&1; then
    ran "$log" || failed "no test ran"
else
    cat "$log"
    failed "the tests with -Xcheck:jni"
fi
# What went past the runner is in files of their own.
find "$out/classes/surefire-reports" -name '*dump*' -exec cat {} + >>"$log"
if grep -n -A12 -E 'WARNING.*(JNI|native)|FATAL ERROR in native' "$log"; then
    failed "the JVM complains of native code"
fi

say javadoc
rm -rf "$out/javadoc"
# shellcheck disable=SC2046 # names of classes have no spaces
javadoc -quiet -Xdoclint:all -Werror --release 17 -d "$out/javadoc" $(find src/main/java -name '*.java') || failed javadoc

say "the benchmark compiles"
"${maven[@]}" -q "-Desker.target=$out/bench" -f bench/pom.xml compile || failed "the benchmark"

say "the README's program in an empty project"
project=$out/first
rm -rf "$project"
mkdir -p "$project/src/main/java"
awk '/^```java$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$project/src/main/java/First.java"
{
    cat <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>first</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <build>
    <plugins>
      <plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
      <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin>
      <plugin><groupId>org.codehaus.mojo</groupId><artifactId>exec-maven-plugin</artifactId><version>3.5.0</version></plugin>
    </plugins>
  </build>
  <dependencies>
POM
    awk '/^```xml$/ { on = 1; next } /^```$/ { on = 0 } on' README.md
    printf '  </dependencies>\n</project>\n'
} >"$project/pom.xml"
awk '/^It prints$/ { said = 1 } said && /^```$/ { if (on) exit; on = 1; next } on' README.md >"$project/expected"
[ -s "$project/expected" ] || failed "the README does not say what its program prints"
(cd "$project" && timeout 300 mvn -q -B -ntp "-Dmaven.repo.local=$repository" compile exec:java -Dexec.mainClass=First |
    sed $'s/\e\\[[0-9;]*m//g' >printed) || failed "the README's program"
diff "$project/expected" "$project/printed" || failed "the README's program prints something else"
# The same as a module, which the jar is.
rm -rf "$project/trees"
(cd "$project" && java -p "$repository/io/esker/esker/0.1.0/esker-0.1.0.jar" --add-modules io.esker -cp target/classes First >printed) ||
    failed "the README's program with the jar as a module"
diff "$project/expected" "$project/printed" || failed "the README's program prints something else with the jar as a module"
[ -e "$project/trees/CURRENT" ] || failed "the README's program made no store"

[ $status -eq 0 ] && echo "all of bindings/java passed"
exit $status
