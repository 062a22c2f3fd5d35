# frozen_string_literal: true

require "pando/fork_safety/libraries"

module Pando
  module Doctor
    module Subject
      # What is known of the libraries that a mold has loaded, told from inside of it. The audit is not
      # asked: it judges what is open when a fork is made, while the doctor sees what is still shared
      # once the children have served.
      #
      # @api private
      module Libraries
        # @param wire [Wire]
        # @param prepared [Array<String>] those that the user's hooks take care of
        # @return [nil]
        def self.tell(wire, prepared)
          known = ForkSafety::Libraries
          wire.tell(section: :libraries, pid: Process.pid, entries: known.loaded.map(&:to_h),
                    findings: known.findings(prepared: prepared).map(&:to_h))
        rescue StandardError => error
          wire.tell(section: :libraries, pid: Process.pid, findings: [], error: "#{error.message} (#{error.class})")
        end
      end
    end
  end
end
