# frozen_string_literal: true

module Pando
  # One fact about the cluster, such as "worker 3 of generation 2 is ready". Events.emit creates it in the process that
  # observed the fact and hands it to that process's subscribers. It is immutable.
  #
  #     event.name            # => "worker.ready"
  #     event[:slot]          # => 3
  class Event
    # @return [String] `noun.verb`
    attr_reader :name
    # @return [Time] wall-clock time of the emit
    attr_reader :time
    # @return [Hash{Symbol => Object}] frozen
    attr_reader :payload

    # @param name [String]
    # @param payload [Hash{Symbol => Object}]
    # @param time [Time]
    def initialize(name, payload = {}, time: Time.now)
      @name = name
      @payload = payload.frozen? ? payload : payload.dup.freeze
      @time = time
      freeze
    end

    # @param key [Symbol]
    # @return [Object, nil]
    def [](key)
      @payload[key]
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{@name} #{@payload}>"
    end
  end
end
