# frozen_string_literal: true

require "test_helper"
require "pando/native"

# Requests and responses of all kinds through Rack::Lint, for each Rack that is
# installed, each in a process of its own.
class RackLintTest < Minitest::Test
  SCRIPT = File.expand_path("support/lint_run.rb", __dir__)

  %w[2.2 3.0 3.1 3.2].each do |release|
    define_method("test_rack_#{release.tr(".", "_")}") do
      out = run_with("~> #{release}.0")
      skip "rack #{release} is not installed" if out.include?("no such rack")

      assert_match(/\Arack #{release}\.\d+\S*: \d+ requests, no complaint\Z/, out)
    end
  end

  def test_the_rack_of_the_bundle
    assert_match(/: \d+ requests, no complaint\Z/, run_with(">= 2.2"))
  end

  def run_with(requirement)
    paths = $LOAD_PATH.grep(%r{\A/}).grep_v(%r{/gems/(rack|minitest)-})
    gems = Gem.path.join(File::PATH_SEPARATOR)
    command = [RbConfig.ruby, *paths.flat_map { |path| ["-I", path] }, SCRIPT, requirement]
    Support::Checkout.without_bundle { IO.popen({ "GEM_PATH" => gems }, command, err: %i[child out], &:read) }
  end
end
