# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require "support/servers"

# The gem as users get it: built, installed into an empty GEM_HOME, run from another folder.
class GemInstallTest < Minitest::Test
  include Support::Servers

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
        require "pando/http/reactor_setup"
        puts [Pando::HTTP::ReactorProgram.path].select { |path| File.executable?(path) }
      RUBY
      assert_match(%r{^#{folder}/home/\S+/pando_ext\.so$}, loaded)
      assert_match(%r{^#{folder}/home/\S+/pando-reactor$}, loaded)
      refute_match(%r{^#{Support::Checkout.path("lib")}/}, loaded)
    end
  end

  # No gem is found but Pando, neither those that Ruby brings along: only what no Ruby lacks is there, and Rack.
  def test_it_serves_and_reports_with_nothing_but_rack_beside_it
    Dir.mktmpdir("pando-gem") do |folder|
      install(build(folder), folder)
      pando = [RbConfig.ruby, File.join(folder, "home/bin/pando")]
      server = serve(env: alone(folder), config: "workers 2\nrefork :manual\ncontrol \"control.sock\"",
                     program: pando, arguments: ["-l", "unix:pando.sock"])
      server.get("/")
      server.refork

      assert_equal 200, server.get("/").status
      %w[status pages].each do |command|
        run_in(folder, *pando, command, "--control", "control.sock", chdir: server.folder)
      end
      assert_empty server.complaints
      assert_match(/^OK/, run_in(folder, *pando, "doctor", chdir: server.folder))
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
    output, status = Support::Checkout.without_bundle { Open3.capture2e(alone(folder), *command, chdir: chdir) }
    assert_predicate(status, :success?, "#{command.join(" ")}:\n#{output}")
    output
  end

  def alone(folder)
    path = "#{RbConfig::CONFIG["bindir"]}:#{ENV.fetch("PATH")}"
    home = File.join(folder, "home")
    { "GEM_HOME" => home, "GEM_PATH" => home, "HOME" => folder, "PATH" => path, "RUBYOPT" => nil,
      "RUBYLIB" => Gem.loaded_specs.fetch("rack").full_require_paths.join(":") }
  end
end
