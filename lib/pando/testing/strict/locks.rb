# frozen_string_literal: true

require "pando/testing/places"

module Pando
  module Testing
    class Strict
      # The locks that background threads hold when their process is forked.
      #
      # @api private
      module Locks
        # @return [Array<ForkSafety::Finding>] one for all locks: Ruby does not tell which thread holds which
        def self.findings
          held = ObjectSpace.each_object(Thread::Mutex).count { |mutex| mutex.locked? && !mutex.owned? }
          return [] if held.zero?

          places = (Thread.list - [Thread.main]).filter_map { |thread| Places.of(thread) }
          message = "A background thread held a lock during the refork, and the child does not have the thread. " \
                    "Background threads were at #{places.join(", ")}."
          [ForkSafety::Finding.new(:lock_held, subject: "Mutex", location: places.first, message: message)]
        end
      end
    end
  end
end
