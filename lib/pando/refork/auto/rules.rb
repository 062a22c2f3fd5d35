# frozen_string_literal: true

require "pando/refork/policy"

module Pando
  module Refork
    # See auto.rb.
    class Auto < Policy
      GIB = 1024.0**3
      # What each `prefer` means, see Rules. A vCPU costs what 8 GiB of memory cost, at the large clouds: that is the
      # rate of `:cpu`. But most of the CPU time that is paid for is idle, so that peaks fit, and a refork takes of
      # that, for it waits for a quiet moment; memory is in use day and night. So a second of it is worth a quarter.
      PREFERENCES = {
        memory: { rate: 0.5 * GIB, share: 0.25, floor: 5.0, most: 30.0 },
        balanced: { rate: 2 * GIB, share: 0.08, floor: 10.0, most: 120.0 },
        cpu: { rate: 8 * GIB, share: 0.02, floor: 60.0, most: 600.0 }
      }.freeze
      private_constant :GIB, :PREFERENCES

      # What `refork :auto` goes by.
      #
      #   rate      bytes whose use for a second is worth a second of CPU time
      #   share     of the CPU time that all takes, what reforks may take at most, however much they save
      #   floor     seconds from one generation's rollout to the next refork, at first
      #   most      and at most, once the app has been served for ten times as long
      #   patience  seconds that a quiet moment is waited for
      #   lull      seconds without requests after which the server counts as idle
      #   worth     whether the first refork must be worth its price; not if something else waits for it
      #
      # @api private
      Rules = Struct.new(:rate, :share, :floor, :most, :patience, :lull, :worth, keyword_init: true) do
        # @param prefer [:memory, :balanced, :cpu]
        # @param scale [Numeric] seconds of production that a second stands for
        # @param worth [Boolean]
        # @return [Rules]
        def self.for(prefer = :balanced, scale: 1, worth: true)
          rules = PREFERENCES.fetch(prefer)
          times = { patience: 5.0, lull: 60.0, **rules.slice(:rate, :floor, :most) }
          new(**times.transform_values { |value| value / scale }, share: rules[:share], worth: worth)
        end

        # @param lived [Numeric] seconds that the app has served since its cold boot
        # @return [Float] seconds
        def pause(lived) = (lived / 10.0).clamp(floor, most)
      end
    end
  end
end
