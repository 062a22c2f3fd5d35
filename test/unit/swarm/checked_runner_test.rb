# frozen_string_literal: true

require "test_helper"
require "pando/config/node_line"
require "pando/swarm"
require "pando/swarm/checked_runner"

# The error tells the author of a runner what is wrong with it, and where.
class SwarmCheckedRunnerTest < Minitest::Test
  KIND = Pando::Config::NodeKind.new(name: "mine", source: "config/swarm.rb:3")

  class Runner
    def initialize(**answers)
      answers.each { |name, value| define_singleton_method(name) { value } }
    end

    def start; end
    def quiet; end
    def stop; end
    def busy? = :yes
    def progress = 3
  end

  def runner(**answers) = Pando::Swarm::CheckedRunner.new(Runner.new(**answers), KIND)

  def says(message, &block)
    assert_equal "config/swarm.rb:3: node mine: #{message}", assert_raises(Pando::Error, &block).message
  end

  def test_what_a_block_has_returned
    says("the block returned nil, which is not a runner: it lacks start, quiet, stop, busy?, progress") do
      Pando::Swarm::CheckedRunner.new(nil, KIND)
    end
  end

  def test_what_holds_where_it_says_nothing
    one = runner

    assert_equal [true, 3, 3, 0, 1, nil, nil],
                 [one.busy?, one.progress, one.done, one.failed, one.in_progress, one.lag, one.trouble]
    assert_equal [3, 0], [runner(done: nil).done, runner(busy?: nil).in_progress]
  end

  def test_what_it_says
    one = runner(done: 5, failed: 2, in_progress: 4, lag: 2**40, healthy?: "it is ill")

    assert_equal [5, 2, 4, 4_000_000_000, "it is ill"], [one.done, one.failed, one.in_progress, one.lag, one.trouble]
    assert_equal [0, nil], [runner(lag: -1).lag, runner(healthy?: true).trouble]
    assert_equal([nil, 2500, 3000, 0, 4_000_000_000],
                 [nil, 2.5, 3, -1, 1e12].map { |seconds| runner(latency: seconds).latency })
  end

  def test_what_does_not_return_is_known_once_that_takes_a_while
    one = nil
    late_calls = []
    stuck = Runner.new
    stuck.define_singleton_method(:stop) { late_calls << one.late_call(Pando::Sys.now) << one.late_call(Pando::Sys.now + 2) }
    one = Pando::Swarm::CheckedRunner.new(stuck, KIND)
    one.stop

    assert_nil late_calls.first
    assert_match(%r{\Aconfig/swarm\.rb:3: node mine: #{Runner}#stop has not returned for 2\.\d s\z}, late_calls.last)
    assert_nil one.late_call
  end

  def test_what_it_may_not_say
    says("#{Runner}#progress must be an Integer, but is nil") { runner(progress: nil).progress }
    says("#{Runner}#progress must be from 0 to 2**62 - 1, but is #{2**80}") { runner(progress: 2**80).progress }
    says("#{Runner}#done must be an Integer, but is 1.5") { runner(done: 1.5).done }
    says("#{Runner}#in_progress must be from 0 to 2**62 - 1, but is -1") { runner(in_progress: -1).in_progress }
    says("#{Runner}#lag must be an Integer or nil, but is \"12\"") { runner(lag: "12").lag }
    says("#{Runner}#latency must be a number of seconds or nil, but is \"1\"") { runner(latency: "1").latency }
    says("#{Runner}#latency must be a number of seconds or nil, but is NaN") { runner(latency: Float::NAN).latency }
    says("#{Runner}#healthy? must be nil, or a String that says what is wrong, but is false") do
      runner(healthy?: false).trouble
    end
  end
end
