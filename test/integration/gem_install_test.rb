# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# The gem as users get it: built, installed into an empty GEM_HOME, run from another folder.
class GemInstallTest < Minitest::Test
  def test_installed_gem_has_a_working_executable_its_own_extension_and_a_reactor
    Dir.mktmpdir("pando-gem") do |folder|
      install(build(folder), folder)

      version = run_in(folder, File.join(folder, "home/bin/pando"), "--version")
      assert_includes(version, Pando::VERSION)

      loaded = run_in(folder, RbConfig.ruby, "-e", <<~RUBY)
        gem "pando", "#{Pando::VERSION}"
        require "pando"
        require "pando/native"
        puts $LOADED_FEATURES.grep(/pando/)
        require "pando/http/reactor_program"
        puts [Pando::HTTP::ReactorProgram.path].select { |path| File.executable?(path) }
      RUBY
      assert_match(%r{^#{folder}/home/\S+/pando_ext\.so$}, loaded)
      assert_match(%r{^#{folder}/home/\S+/pando-reactor$}, loaded)
      refute_match(%r{^#{Support::Checkout.path("lib")}/}, loaded)
    end
  end

  private

  def build(folder)
    package = File.join(folder, "pando.gem")
    run_in(folder, "gem", "build", "pando.gemspec", "--output", package, chdir: Support::Checkout.path)
    package
  end

  def install(package, folder)
    run_in(folder, "gem", "install", "--local", "--no-document", package)
  end

  # Commands of the Ruby that runs the tests, with nothing installed but what goes into folder.
  def run_in(folder, *command, chdir: folder)
    path = "#{RbConfig::CONFIG["bindir"]}:#{ENV.fetch("PATH")}"
    home = File.join(folder, "home")
    environment = { "GEM_HOME" => home, "GEM_PATH" => home, "HOME" => folder, "PATH" => path, "RUBYLIB" => nil }
    output, status = Support::Checkout.without_bundle { Open3.capture2e(environment, *command, chdir: chdir) }
    assert_predicate(status, :success?, "#{command.join(" ")}:\n#{output}")
    output
  end
end
