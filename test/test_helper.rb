# frozen_string_literal: true

root = File.expand_path("..", __dir__)
$LOAD_PATH.unshift(File.join(root, "lib"), __dir__)

require "minitest/autorun"
require "support/warnings"
require "pando"
require "support/checkout"
require "support/ports"
require "support/results"
require "support/waiting"

# Bundler 4 names our lock file to all that we start, and its Bundler would take it for that of another Gemfile.
ENV.delete("BUNDLE_LOCKFILE")
# Bundler would load itself into each Ruby that we start, which takes as long as all of Pando. They find our gems by
# GEM_HOME.
%w[RUBYOPT RUBYLIB BUNDLER_SETUP].each { |name| ENV[name] = Bundler.original_env[name] } if defined?(Bundler)

class Minitest::Test
  include Support::Ports
  include Support::Waiting
end

if (path = ENV.delete("PANDO_TEST_RESULTS"))
  Minitest.extensions << "pando_results"
  Minitest.define_singleton_method(:plugin_pando_results_init) do |_options|
    reporter << Support::Results.new(path)
  end
end
