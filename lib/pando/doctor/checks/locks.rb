# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Locks that a thread holds while another one forks: who holds them is gone in the child,
      # and what they guard is half done.
      #
      # @api private
      class Locks < Check
        def findings
          held = evidence.snapshots(:fork).flat_map { |fact| fact[:locks] }.uniq
          held.reject { |lock| evidence.ours?(lock[:location]) }.map do |lock|
            name = "a #{lock[:type]}"
            finding(:lock_held, subject: name, location: lock[:location],
                                message: "#{name} is held by a background thread while the process is forked")
          end
        end
      end
    end
  end
end
