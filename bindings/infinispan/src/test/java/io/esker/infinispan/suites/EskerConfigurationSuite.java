package io.esker.infinispan.suites;

import org.infinispan.configuration.serializer.AbstractConfigurationSerializerTest;
import org.testng.annotations.Test;

/**
 * Infinispan's public suite for configurations, unmodified: each file in {@code configs/all} is read, written as XML, JSON and
 * YAML, and read again, and says the same each time.
 */
@Test(testName = "suites.EskerConfiguration", groups = "functional")
public class EskerConfigurationSuite extends AbstractConfigurationSerializerTest {}
