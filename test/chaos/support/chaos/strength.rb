# frozen_string_literal: true

module Chaos
  # The recovery to full strength after a round of faults.
  class Strength
    # Seconds that it must last, because a process that was just killed may still seem alive.
    STEADY = 0.3
    TICK = 0.05

    def initialize(scene)
      @scene = scene
      @began = Chaos.now
      @stalled = scene.stall.seconds
    end

    # @param limit [Float] seconds, plus those for which the machine kept the server waiting
    # @return [Array(Float, Float), nil] seconds that the recovery took, and those of them that the machine caused; nil:
    #   it took too long
    def await(limit)
      until steady?
        return if @since.nil? && Chaos.now - @began > limit + stall
        return unless @scene.stage.alive?

        sleep TICK
      end
      [@since - @began, stall]
    end

    def to_s
      text = format("not at full strength %<seconds>.1f s (%<stall>.1f of them without a CPU) after the last fault: ",
                    seconds: Chaos.now - @began, stall: stall)
      text + (@roll ? "no #{@roll.missing.join(", no ")}; there are #{@roll}" : "the monitor does not answer")
    end

    private

    def stall = @scene.stall.seconds - @stalled

    def steady?
      @roll = @scene.roll
      @since = @roll&.full? ? @since || Chaos.now : nil
      @since && Chaos.now - @since >= STEADY
    end
  end
end
