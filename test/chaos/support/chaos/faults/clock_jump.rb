# frozen_string_literal: true

module Chaos
  module Faults
    # Sets the wall clock.
    class ClockJump < Fault
      named "clock jump", weight: 4

      JUMPS = [-315_360_000, -3600, -5, 5, 3600, 315_360_000].freeze

      def self.plan(random)
        { "by" => JUMPS.sample(random: random), "seconds" => (random.rand * 3).round(2) }
      end

      def self.obstacle(stage) = ("a C compiler is missing" unless stage.wall_clock?)

      def inject = stage.jump(plan["by"]) && true
      def lift = stage.jump(0)
    end
  end
end
