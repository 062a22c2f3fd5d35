# frozen_string_literal: true

module Pando
  module Cluster
    class Pools
      # What a pool is to be, from the layer above.
      #
      #   payload  what its workers carry; its name is the pool's
      #   policy   when to refork and from whom
      Plan = Struct.new(:payload, :policy, keyword_init: true) do
        def name = payload.name
      end

      # What all pools have in common: the monitor's.
      #
      #   poller    of its loop
      #   command   what becomes the mold of a cold boot
      #   oom       Memory::OomWatch
      #   gauge     Memory::Gauge, and
      #   shortage  Memory::Shortage of the whole tree
      #   relief    Memory::Relief from it
      #   several   whether there are several
      Common = Struct.new(:poller, :command, :oom, :gauge, :shortage, :relief, :several, keyword_init: true)

      # How clients come to its workers: nil and none for all but the first.
      #
      #   listeners  Listening::Listeners
      #   setup      see Payload#reactor
      Ingress = Struct.new(:listeners, :setup) do
        def self.none = new(Listening::Listeners.new, nil)
      end
    end
  end
end
