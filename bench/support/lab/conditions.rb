# frozen_string_literal: true

require "support/lab/setup"

module Bench
  module Lab
    # What all servers of a table have in common.
    #
    # @!attribute requests [Integer] of each worker
    Conditions = Struct.new(:app, :ruby, :yjit, :workers, :requests, :clients, :seed, :app_methods) do
      def to_s
        ["#{app} on Ruby #{ruby} #{yjit ? "with" : "without"} YJIT", "#{workers} workers", "#{requests} requests each",
         *unusual].join(", ")
      end

      # @return [Array<String>]
      def unusual
        [["%d clients", :clients], ["seed %d", :seed], ["%d methods", :app_methods]].filter_map do |words, name|
          format(words, self[name]) unless usual?(name)
        end
      end

      # @return [String] the beginning of a picture's name
      def file
        more = %i[workers clients seed app_methods].filter_map { |name| "#{name}#{self[name]}" unless usual?(name) }
        [app, "ruby#{ruby}", yjit ? "yjit" : "plain", requests, *more].join("-")
      end

      private

      def usual?(name) = self[name] == Setup::DEFAULTS[name]
    end
  end
end
