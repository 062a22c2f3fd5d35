# frozen_string_literal: true

require "test_helper"
require_relative "support/mutation_run"

# A few thousand requests, most of them a little wrong: no crash, no hang, none
# accepted that RFC 9112 tells a server to reject, none refused that is right, and
# none read otherwise. fuzz/mutations runs as many more as wanted.
class MutationsConformanceTest < Minitest::Test
  COUNT = 5000

  Conformance::MutationRun::MODES.each_key do |mode|
    define_method("test_#{mode}") do
      seed = Random.rand(1 << 32)
      run = Conformance::MutationRun.new(mode, seed).run(COUNT)

      assert_empty run.faults.first(5), "seed #{seed}"
      assert_includes run.outcomes, [200], "none was accepted"
      assert_includes run.outcomes, [400], "none was refused"
    end
  end
end
