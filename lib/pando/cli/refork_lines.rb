# frozen_string_literal: true

module Pando
  module CLI
    # The lines of `pando status` about reforking: its state, and the workers that may not become molds.
    #
    # @api private
    module ReforkLines
      private

      # The state of `refork :auto`.
      def reforking
        all("refork").map do |refork|
          decided = "; last decision: #{refork["decided"]}" if refork["decided"]
          waits = "; now: #{refork["waits"]}" if refork["waits"]
          printable("refork :auto#{of(refork)} is #{refork["phase"]}#{decided}#{waits}")
        end
      end

      # Memory that each mold inherits and hands down.
      def leaks
        all("leak").map do |leak|
          waits = "; no cold boot: #{leak["waits"]}" if leak["waits"]
          printable("each request#{of(leak)} leaks #{(leak["rate"] / 1024.0).round(1)} KiB that molds hand down: " \
                    "#{mebibytes(leak["before"])} after #{leak["after"]} requests, #{mebibytes(leak["bytes"])} after " \
                    "#{leak["requests"]}#{waits}")
        end
      end

      # Why Pando refuses to refork, in the words of `pando refork`.
      def lost_threads
        all("lost_thread").map do |one|
          scope = "no refork from #{one["held"]} of #{counted(one["workers"], "worker")}#{of(one)}" if one["refused"]
          printable("#{scope || "lost thread#{of(one)}"}: #{one["reason"]}. #{one["advice"]}")
        end
      end

      # Why Pando refuses to refork from these workers.
      def changed_states
        all("changed_state").map { |one| printable("no refork from worker #{one["slot"]}#{of(one)}: #{one["reason"]}") }
      end
    end
  end
end
