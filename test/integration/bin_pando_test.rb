# frozen_string_literal: true

require "test_helper"
require "json"
require "net/http"
require "open3"
require "tmpdir"

# bin/pando of a checkout serving an app that lives elsewhere and brings its own bundle.
class BinPandoTest < Minitest::Test
  RACKUP = <<~RUBY
    require "json"
    facts = { gemfile: ENV["BUNDLE_GEMFILE"], gem_home: ENV["GEM_HOME"], folder: Dir.pwd,
              rack: Gem.loaded_specs["rack"].version.to_s, pando: Gem.loaded_specs["pando"].full_gem_path }
    run ->(_env) { [200, { "content-type" => "application/json" }, [JSON.generate(facts)]] }
  RUBY

  def test_serves_an_app_from_its_own_folder_with_its_own_gems
    in_app do |folder, environment|
      facts = serve(environment, folder)

      assert_equal(File.join(folder, "Gemfile"), facts["gemfile"])
      assert_equal(environment["GEM_HOME"], facts["gem_home"])
      assert_equal(folder, facts["folder"])
      assert_equal(Support::Checkout::ROOT, facts["pando"])
      assert_operator(Gem::Version.new(facts["rack"]), :<, Gem::Version.new("3"))
    end
  end

  def test_takes_the_bundle_that_bundle_gemfile_names
    in_app do |folder, environment|
      elsewhere = File.join(folder, "elsewhere")
      Dir.mkdir(elsewhere)
      facts = serve(environment.merge("BUNDLE_GEMFILE" => File.join(folder, "Gemfile")), elsewhere, "../config.ru")

      assert_equal(File.join(folder, "Gemfile"), facts["gemfile"])
      assert_equal(Support::Checkout::ROOT, facts["pando"])
    end
  end

  private

  def in_app
    Dir.mktmpdir("pando-app") do |folder|
      folder = File.realpath(folder)
      File.write(File.join(folder, "config.ru"), RACKUP)
      File.write(File.join(folder, "Gemfile"), <<~RUBY)
        source "https://rubygems.org"
        gem "pando", path: #{Support::Checkout::ROOT.inspect}
        gem "rack", "~> 2.2"
      RUBY
      environment = environment(folder)
      bundle_install(environment, folder)
      yield folder, environment
    end
  end

  # The Ruby that runs the tests, and gems in the app's own GEM_HOME.
  def environment(folder)
    { "GEM_HOME" => File.join(folder, "gems"), "RUBYLIB" => nil,
      "PATH" => "#{RbConfig::CONFIG["bindir"]}:#{ENV.fetch("PATH")}" }
  end

  def bundle_install(environment, folder)
    output, status = Support::Checkout.without_bundle do
      Open3.capture2e(environment, "bundle", "install", chdir: folder)
    end
    assert_predicate(status, :success?, output)
  end

  # Starts the server, returns what the app says about itself, stops the server.
  def serve(environment, folder, rackup = "config.ru")
    port = free_port
    log = File.join(folder, "server.log")
    pid = Support::Checkout.without_bundle do
      spawn(environment, Support::Checkout.path("bin/pando"), rackup, "-l", "127.0.0.1:#{port}", "-w", "1",
            chdir: folder, out: log, err: log)
    end
    JSON.parse(wait_until(message: -> { "an answer; #{File.read(log)}" }) { answer(port, pid) })
  ensure
    stop(pid, log) if pid
  end

  def answer(port, pid)
    flunk("the server ended") if Process.wait(pid, Process::WNOHANG)
    Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
  rescue SystemCallError, EOFError
    nil
  end

  # bin/pando becomes the server: its pid takes the signal and has the exit status.
  def stop(pid, log)
    Process.kill(:TERM, pid)
    _, status = wait_until(message: "the server's end") { Process.wait2(pid, Process::WNOHANG) }
    assert_equal(0, status.exitstatus, File.read(log))
  rescue Errno::ESRCH, Errno::ECHILD
    nil # It has ended already, and the test has failed for that.
  end
end
