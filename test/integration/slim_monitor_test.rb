# frozen_string_literal: true

require "test_helper"
require "support/server_process"

# The monitor gives RubyGems back before it begins, unless the config needs them there.
class SlimMonitorTest < Minitest::Test
  APP = <<~RUBY
    ours = %w[PANDO_SLIM PANDO_FULL PANDO_BOOT]
    run ->(_env) { [200, {}, [ENV.fetch("RUBYOPT", "none"), " ", defined?(Gem).inspect, " ", (ENV.keys & ours).inspect]] }
  RUBY

  def teardown
    @server&.kill
  end

  def start(config = "", env: {})
    @server = Support::ServerProcess.start(app: APP, config: "workers 1\n#{config}", env: env)
  end

  def slim?
    File.read("/proc/#{@server.pid}/environ").include?("PANDO_SLIM=")
  end

  def test_the_monitor_is_slim_and_the_application_is_not
    start(env: { "RUBYOPT" => "-W0" })

    assert_predicate self, :slim?
    assert_match(/-W0\b.* "(expression|constant)" \[\]\z/, @server.get("/").body)
    assert_predicate @server.stop, :success?
  end

  def test_code_of_the_users_in_the_monitor_keeps_its_gems
    start("on('worker.ready') { |event| File.write('seen', defined?(Gem).inspect) }")

    refute_predicate self, :slim?
    assert_match(/expression|constant/, File.read(File.join(@server.folder, "seen")))
  end

  def test_a_config_that_needs_a_gem_gets_the_gems_back
    start("gem 'rack'\nrequire 'rack'\nbefore_fork { Rack::RELEASE }")

    refute_predicate self, :slim?
    assert_equal 200, @server.get("/").status
  end

  def test_a_wrong_config_is_told_once
    server = Support::ServerProcess.new(app: APP, config: "worker 1")
    status = server.wait_for_exit

    assert_equal 2, status.exitstatus
    assert_equal 1, server.output.scan("unknown setting").size
    assert_match(/pando\.rb:2: unknown setting worker\. Did you mean workers\?/, server.output)
  ensure
    server.kill
  end
end
