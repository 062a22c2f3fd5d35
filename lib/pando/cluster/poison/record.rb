# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    class Poison
      # Workers that have ended at requests of one method and path.
      #
      # @api private
      class Record
        # Deaths that are remembered.
        MOST = 1000

        # @return [Array(String, String)] method and path
        attr_reader :name

        def initialize(name)
          @name = name
          @deaths = [] # when and how
        end

        # @param ending [String]
        def add(ending)
          @deaths.shift if @deaths.size >= MOST
          @deaths << [Sys.now, ending]
        end

        # @return [Boolean] a worker has ended within so many seconds
        def within?(seconds) = @deaths.any? && Sys.now - @deaths.last.first < seconds

        # @return [Integer] workers within so many seconds
        def count(seconds) = lately(seconds).size

        # @return [String] "exit status 4 (2), signal KILL"
        def endings(seconds)
          counts = lately(seconds).map(&:last).tally
          counts.map { |ending, count| count > 1 ? "#{ending} (#{count})" : ending }.join(", ")
        end

        # @return [Boolean] nothing was told of it for so long
        def due?(seconds) = @told_at.nil? || Sys.now - @told_at >= seconds

        def told = @told_at = Sys.now

        private

        def lately(seconds)
          now = Sys.now
          @deaths.select { |time, _| now - time < seconds }
        end
      end
    end
  end
end
