# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"

# The setting `jit` in a Ruby of its own, for whether YJIT is on cannot be taken back.
class ServerJitTest < Minitest::Test
  LIBRARY = File.expand_path("../../../lib", __dir__)
  POSSIBLE = defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable)
  BEGINNING = <<~RUBY
    require "json"
    require "pando/server/jit"
    require "pando/server/launch"
    Jit = Pando::Server::Jit
    told = []
    Pando::Events.subscribe { |event| told << [event.name, event.payload] }
    on = []
    look = -> { on << Pando::YJIT.enabled? }
  RUBY

  # @return [Array] whether it was on at each `look`, and the events
  def run_ruby(script, yjit: nil, jit: nil)
    program = "#{BEGINNING}#{script}\nputs JSON.generate([on, told])"
    output, status = Open3.capture2e({ "RUBY_YJIT_ENABLE" => yjit }, RbConfig.ruby, *jit, "-W0", "--disable=gems",
                                     "-I", LIBRARY, "-e", program)
    assert_predicate status, :success?, output
    JSON.parse(output)
  end

  def need_yjit
    skip "Ruby #{RUBY_VERSION} has no YJIT that can be enabled later" unless POSSIBLE
  end

  def need_zjit
    _, status = Open3.capture2e(RbConfig.ruby, "--zjit", "-e", "exit(RubyVM::ZJIT.enabled?)")
    skip "Ruby #{RUBY_VERSION} has no ZJIT" unless status.success?
  end

  # The code of its boot does not run again.
  def test_on_after_the_application_was_loaded
    need_yjit
    assert_equal [[false, true, true, true], []], run_ruby(<<~RUBY)
      look.call
      on << Jit.code_bytes.zero?
      Jit.enable
      look.call
      def hot(number) = number + 1
      1000.times { |number| hot(number) }
      on << Jit.code_bytes.positive?
    RUBY
  end

  def test_in_what_is_forked
    need_yjit
    assert_equal [[true], []], run_ruby(<<~RUBY)
      Jit.enable
      Process.wait(fork { exit!(Pando::YJIT.enabled? ? 1 : 0) })
      on << ($?.exitstatus == 1)
    RUBY
  end

  def test_where_it_is_on_already
    need_yjit
    assert_equal [[true], []], run_ruby("Jit.enable\nlook.call", yjit: "1")
    assert_equal [[true], []], run_ruby("RubyVM::YJIT.enable\nJit.enable\nlook.call")
  end

  def test_beside_zjit
    need_zjit
    on, ((name, payload)) = run_ruby(<<~RUBY, jit: "--zjit")
      Jit.enable
      look.call
      on << Jit.code_bytes.zero? << (Pando::Server::Launch.jit == ["--zjit"])
    RUBY

    assert_equal [[false, true, true], "jit.unavailable"], [on, name]
    assert_match(/ZJIT is on/, payload["reason"])
  end

  def test_where_ruby_cannot
    skip "Ruby #{RUBY_VERSION} can" if POSSIBLE
    on, ((name, payload)) = run_ruby("Jit.enable\nlook.call")

    assert_equal [[false], "jit.unavailable"], [on, name]
    assert_match(/Ruby #{RUBY_VERSION} cannot enable YJIT: that takes 3\.3 or newer/, payload["reason"])
  end
end
