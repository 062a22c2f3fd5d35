# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "json"
require "open3"
require "support/checkout"
require "support/programs"
require "yaml"
require_relative "../../../bench/support/cache"

# The examples that scale a Deployment, against the schemas of Kubernetes and KEDA. It needs Node.js and npm.
class KubernetesExamplesTest < Minitest::Test
  SCHEMAS = Support::Checkout.path("test/support/kubernetes")
  FILES = %w[package.json validate.mjs].freeze
  CACHE = Bench::Cache.path("kubernetes-schemas")

  def setup
    missing = %w[node npm].reject { |program| Support::Programs.find(program) }
    skip "no #{missing.join(" and no ")}" if missing.any?
    FileUtils.mkdir_p(CACHE)
    install
  end

  def install
    Bench::Cache.locked("#{CACHE}.lock") do
      FileUtils.cp(FILES.map { |name| File.join(SCHEMAS, name) }, CACHE)
      output, status = Open3.capture2e("npm", "install", "--no-audit", "--no-fund", "--prefer-offline", chdir: CACHE)
      assert_predicate(status, :success?, output)
    end
  end

  # @return [Array<String>]
  def faults(manifests)
    output, status = Open3.capture2e("node", "validate.mjs", stdin_data: JSON.generate(manifests), chdir: CACHE)
    assert_predicate(status, :success?, output)
    output.lines(chomp: true)
  end

  def manifests(name)
    YAML.load_stream(File.read(Support::Checkout.path("examples/kubernetes/autoscale-#{name}.yaml")))
  end

  def test_they_keep_to_the_schemas
    %w[hpa keda].each { |name| assert_empty(faults(manifests(name)), name) }
  end

  def test_a_fault_would_be_found
    scaler, = manifests("hpa")
    scaler["spec"]["maxReplicas"] = "many"
    scaled, = manifests("keda")
    scaled["spec"].delete("scaleTargetRef")

    assert_equal(["HorizontalPodAutoscaler: data/spec/maxReplicas must be integer",
                  "ScaledObject: data/spec must have required property scaleTargetRef"], faults([scaler, scaled]))
  end
end
