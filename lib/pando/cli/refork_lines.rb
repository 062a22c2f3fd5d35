# frozen_string_literal: true

module Pando
  module CLI
    # What `pando status` says of reforking: how it stands, and which workers it leaves out.
    #
    # @api private
    module ReforkLines
      private

      # How it stands with `refork :auto`.
      def reforking
        all("refork").map do |refork|
          decided = "; decided last: #{refork["decided"]}" if refork["decided"]
          waits = "; now: #{refork["waits"]}" if refork["waits"]
          printable("refork :auto#{of(refork)} is #{refork["phase"]}#{decided}#{waits}")
        end
      end

      # What each mold inherits and hands down.
      def leaks
        all("leak").map do |leak|
          waits = "; no boot from cold: #{leak["waits"]}" if leak["waits"]
          printable("each request#{of(leak)} leaves #{(leak["rate"] / 1024.0).round(1)} KiB in what molds hand down: " \
                    "#{mebibytes(leak["before"])} after #{leak["after"]} requests, #{mebibytes(leak["bytes"])} after " \
                    "#{leak["requests"]}#{waits}")
        end
      end

      # What `refork` is refused for, in its words.
      def lost_threads
        all("lost_thread").map do |one|
          scope = "no refork from #{one["held"]} of #{counted(one["workers"], "worker")}#{of(one)}" if one["refused"]
          printable("#{scope || "lost thread#{of(one)}"}: #{one["reason"]}. #{one["advice"]}")
        end
      end

      # Likewise.
      def changed_states
        all("changed_state").map { |one| printable("no refork from worker #{one["slot"]}#{of(one)}: #{one["reason"]}") }
      end
    end
  end
end
