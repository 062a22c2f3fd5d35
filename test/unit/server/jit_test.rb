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
    Worker = Struct.new(:slot, :generation)
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

  def test_left_alone
    assert_equal [[false, false], []], run_ruby(<<~RUBY)
      jit = Jit.new(nil)
      jit.loaded
      look.call
      jit.train(Worker.new(0, 0))
      Process.wait(fork { jit.promoted; exit!(Pando::YJIT.enabled? ? 1 : 0) })
      on << ($?.exitstatus == 1)
    RUBY
  end

  def test_in_all
    need_yjit
    assert_equal [[false, true], []], run_ruby("jit = Jit.new(:all)\nlook.call\njit.loaded\nlook.call")
  end

  def test_in_the_trainee
    need_yjit
    on, told = run_ruby(<<~RUBY)
      jit = Jit.new(:trainee)
      jit.loaded
      jit.promoted # the mold of a cold boot
      look.call
      on << Jit.code_bytes.zero?
      2.times { jit.train(Worker.new(2, 0)) }
      look.call
      def hot(number) = number + 1
      1000.times { |number| hot(number) }
      on << Jit.code_bytes.positive?
    RUBY

    assert_equal [false, true, true, true], on
    assert_equal([["jit.enabled", 2]], told.map { |name, payload| [name, payload["slot"]] })
  end

  # The next mold has one though it was not forked from the trainee.
  def test_in_each_mold_that_was_forked
    need_yjit
    assert_equal [[false, true], []], run_ruby(<<~RUBY)
      jit = Jit.new(:trainee)
      jit.loaded
      look.call
      Process.wait(fork { jit.promoted; exit!(Pando::YJIT.enabled? ? 1 : 0) })
      on << ($?.exitstatus == 1)
    RUBY
  end

  def test_where_it_is_on_already
    need_yjit
    reasons = ["", "RubyVM::YJIT.enable"].zip(["1", nil]).map do |application, yjit|
      _, ((name, payload)) = run_ruby("jit = Jit.new(:trainee)\n#{application}\njit.loaded", yjit: yjit)
      assert_equal "jit.unavailable", name
      payload["reason"]
    end

    assert_match(/from the start \(RUBYOPT, RUBY_YJIT_ENABLE or --yjit\)/, reasons.first)
    assert_match(/the application has enabled YJIT \(.*config\.yjit/, reasons.last)
    assert_equal [[true], []], run_ruby("Jit.new(:all).loaded\nlook.call", yjit: "1"), "as it should be"
  end

  def test_beside_zjit
    need_zjit
    %i[all trainee].each do |setting|
      on, ((name, payload)) = run_ruby(<<~RUBY, jit: "--zjit")
        jit = Jit.new(:#{setting})
        jit.loaded
        jit.train(Worker.new(0, 0))
        look.call
        on << Jit.code_bytes.zero? << (Pando::Server::Launch.jit == ["--zjit"])
      RUBY

      assert_equal [false, true, true], on
      assert_equal ["jit.unavailable", setting.to_s], [name, payload["setting"]]
      assert_match(/ZJIT is on/, payload["reason"])
    end
  end

  def test_where_ruby_cannot
    skip "Ruby #{RUBY_VERSION} can" if POSSIBLE
    on, told = run_ruby(<<~RUBY)
      %i[all trainee].each do |setting|
        jit = Jit.new(setting)
        jit.loaded
        jit.train(Worker.new(0, 0))
        look.call
      end
    RUBY

    assert_equal [false, false], on
    assert_equal([["jit.unavailable", "all"], ["jit.unavailable", "trainee"]],
                 told.map { |name, payload| [name, payload["setting"]] })
    assert_match(/Ruby #{RUBY_VERSION} cannot enable YJIT: that takes 3\.3 or newer/, told.first.last["reason"])
  end
end
