# frozen_string_literal: true

require "test_helper"
require_relative "../unit/http/support/reactor_stage"
require_relative "support/mutation_run"

# A few thousand requests, most of them a little wrong: no crash, no hang, none
# accepted that RFC 9112 tells a server to reject, none refused that is right, and
# none read otherwise. fuzz/mutations runs as many more as wanted.
class MutationsConformanceTest < Minitest::Test
  COUNT = 5000
  FEWER = 2000

  Conformance::MutationRun::MODES.each_key do |mode|
    define_method("test_#{mode}") do
      seed = Random.rand(1 << 32)
      run = Conformance::MutationRun.new(mode, seed).run(COUNT)

      assert_empty run.faults.first(5), "seed #{seed}"
      assert_includes run.outcomes, [200], "none was accepted"
      assert_includes run.outcomes, [400], "none was refused"
    end
  end

  # Its worker, in C, reads nothing of what it answers.
  def test_the_reactor_under_the_sanitizers
    seed = Random.rand(1 << 32)
    mutations = Conformance::Mutations.new(seed)
    inputs = Array.new(FEWER) { mutations.next }
    judge = Conformance::Judge.new(echo: false)
    faults = inputs.zip(statuses(inputs)).filter_map do |input, seen|
      fault = judge.fault(input, seen)
      [input, fault] if fault
    end

    assert_empty faults.first(5), "seed #{seed}"
  end

  private

  def statuses(inputs)
    with_stage do |stage, battery|
      client = Thread.new { battery.run([*inputs, "GET /enough HTTP/1.0\r\n\r\n"]) }
      assert_match(/\Aserved \d+\z/, stage.tell("serve", 0))
      stage.ok("drain")
      assert_equal 0, stage.wait, "the reactor, and what the sanitizers say of it"
      client.value
    end
  end

  def with_stage
    Dir.mktmpdir do |folder|
      listener = UNIXServer.new("#{folder}/socket")
      listener.listen(1024)
      listener.fcntl(Fcntl::F_SETFL, listener.fcntl(Fcntl::F_GETFL) | Fcntl::O_NONBLOCK)
      stage = HTTPSupport::ReactorStage.new(listener)
      stage.open(0)
      yield stage, Conformance::Battery.new(listener.local_address)
    ensure
      stage&.quit
      listener&.close
    end
  end
end
