# frozen_string_literal: true

require "pando/cluster/poison/ban"

module Pando
  module Cluster
    # What a worker refuses, for it has ended others.
    #
    # Owned by the worker, in its process.
    #
    # @api private
    class Refusals
      def initialize
        @bans = {}
      end

      # @param text [String] as the monitor has sent it
      def add(text)
        @bans.delete_if { |_, ban| ban.over? }
        ban = Poison::Ban.decode(text) or return
        @bans[ban.name] = ban if @bans.size < Poison::Ban::MOST
      end

      # @return [Integer, nil] seconds for which such a job is refused; nil: it is not
      def seconds(verb, path)
        return if @bans.empty?

        ban = @bans[[verb.b, path.b]]
        ban.seconds unless ban.nil? || ban.over?
      end
    end
  end
end
