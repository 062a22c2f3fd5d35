# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/servers"

# Promise: with `ruby -w` nothing of Pando's makes Ruby warn, in any process, whatever compiles: at boot, while it
# serves, reforks and reloads, and in the commands.
class RubyWarningsTest < Minitest::Test
  include Support::Servers

  LIBRARY = Support::Checkout.path("lib")
  PROGRAM = [RbConfig.ruby, "-w", "-I", LIBRARY, Support::Checkout.path("exe/pando")].freeze
  # Of the second definition Ruby warns.
  APP = <<~RUBY
    def careless = 1
    def careless = 2
    run ->(_env) { [200, {}, [Process.pid.to_s]] }
  RUBY
  CONFIG = "workers 2\nrefork :manual\ncontrol \"control.sock\""
  # PANDO_FULL: the monitor does not run itself again without RUBYOPT.
  ENVIRONMENT = { "RUBYOPT" => "#{ENV.fetch("RUBYOPT", nil)} -w", "PANDO_FULL" => "1" }.freeze

  def test_without_a_compiler
    live({ "RUBY_YJIT_ENABLE" => nil })
  end

  def test_with_yjit
    skip "Ruby #{RUBY_VERSION} has no YJIT" unless defined?(RubyVM::YJIT)
    live({ "RUBY_YJIT_ENABLE" => "1" })
  end

  # Which Ruby has from 4.0 on, where it was built with it.
  def test_with_zjit
    skip "Ruby #{RUBY_VERSION} has no ZJIT" unless defined?(RubyVM::ZJIT)
    live({ "RUBY_YJIT_ENABLE" => nil, "RUBYOPT" => "#{ENVIRONMENT["RUBYOPT"]} --zjit" })
  end

  private

  def live(environment)
    @environment = ENVIRONMENT.merge(environment)
    @server = serve(app: APP, config: CONFIG, env: @environment, program: PROGRAM,
                    arguments: ["-l", "unix:pando.sock"])
    serve_some
    @server.refork
    serve_some
    [%w[status], %w[pages --format json], %w[reload --now]].each { |words| command(*words) }
    serve_some
    @server.stop

    assert @server.output.lines.grep(/warning: .*careless/).any?, "Ruby does not warn at all"
    assert_empty warnings(@server.output)
  end

  def serve_some = 20.times { assert_equal 200, @server.get("/").status }

  def command(*words)
    text, status = Open3.capture2e(@environment, *PROGRAM, *words, "--control", "control.sock", chdir: @server.folder)
    assert_predicate status, :success?, text
    assert_empty warnings(text), words.join(" ")
  end

  def warnings(text) = text.lines.grep(/warning:/).grep_v(/careless/)
end
