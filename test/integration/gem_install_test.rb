# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require "support/servers"

# The gem as users get it: built, installed into an empty GEM_HOME, run from another folder.
class GemInstallTest < Minitest::Test
  include Support::Servers

  class << self
    attr_accessor :folder
  end

  def test_installed_gem_has_a_working_executable_its_own_extension_and_a_reactor
    version = run_in(File.join(folder, "home/bin/pando"), "--version")
    assert_includes(version, Pando::VERSION)

    loaded = run_in(RbConfig.ruby, "-e", <<~RUBY)
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

  # No gem is found but Pando, neither those that Ruby brings along: only what no Ruby lacks is there, and Rack.
  def test_it_serves_and_reports_with_nothing_but_rack_beside_it
    pando = [RbConfig.ruby, File.join(folder, "home/bin/pando")]
    server = serve(env: alone, config: "workers 2\nrefork :manual\ncontrol \"control.sock\"",
                   program: pando, arguments: ["-l", "unix:pando.sock"])
    server.get("/")
    server.refork

    assert_equal 200, server.get("/").status
    %w[status pages].each { |command| run_in(*pando, command, "--control", "control.sock", chdir: server.folder) }
    assert_empty server.complaints
    assert_match(/^OK/, run_in(*pando, "doctor", chdir: server.folder))
  end

  private

  # Installed once for all tests, because the extension is compiled for it.
  def folder = self.class.folder || install

  def install
    self.class.folder = Dir.mktmpdir("pando-gem").tap { |path| Minitest.after_run { FileUtils.rm_rf(path) } }
    package = File.join(folder, "pando.gem")
    run_in("gem", "build", "pando.gemspec", "--output", package, chdir: Support::Checkout.path)
    run_in("gem", "install", "--local", "--no-document", package)
    folder
  end

  # Commands of the Ruby that runs the tests, with nothing installed but what goes into the folder.
  def run_in(*command, chdir: folder)
    output, status = Support::Checkout.without_bundle { Open3.capture2e(alone, *command, chdir: chdir) }
    assert_predicate(status, :success?, "#{command.join(" ")}:\n#{output}")
    output
  end

  def alone
    path = "#{RbConfig::CONFIG["bindir"]}:#{ENV.fetch("PATH")}"
    home = File.join(folder, "home")
    { "GEM_HOME" => home, "GEM_PATH" => home, "HOME" => folder, "PATH" => path, "RUBYOPT" => nil,
      "RUBYLIB" => Gem.loaded_specs.fetch("rack").full_require_paths.join(":") }
  end
end
