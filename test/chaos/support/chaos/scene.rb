# frozen_string_literal: true

require "chaos/control"
require "chaos/limits"
require "chaos/roll"
require "chaos/stall"

module Chaos
  # What faults can act on.
  class Scene
    attr_reader :stage, :chronicle, :control, :limits, :stall

    def initialize(stage, chronicle)
      @stage = stage
      @chronicle = chronicle
      @control = Control.new(stage.path("control.sock"))
      @limits = Limits.new(stage)
      @stall = Stall.new
    end

    # @return [Roll, nil] the current one
    def roll = Roll.call(control, stage)

    # @return [Object, nil] the block's first truthy value; nil after that many seconds
    def wait(seconds)
      deadline = Chaos.now + seconds
      loop do
        value = yield
        return value if value
        return if Chaos.now > deadline

        sleep 0.02
      end
    end

    # Does not count the time for which the machine kept the server waiting.
    def patiently(seconds, &block)
      stalled = stall.seconds
      wait(seconds, &block) || wait(stall.seconds - stalled, &block)
    end
  end
end
