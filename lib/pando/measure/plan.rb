# frozen_string_literal: true

module Pando
  module Measure
    # The size of the load.
    #
    # @!attribute workers [Integer] of each server
    # @!attribute requests [Integer] of each worker
    # @!attribute clients [Integer] requests under way at once
    # @!attribute headers [Hash{String => String}] of each request
    # @!attribute against [Symbol] :puma, :none
    #
    # @api private
    Plan = Struct.new(:workers, :requests, :clients, :headers, :against, keyword_init: true) do
      # @return [Integer] requests of each server
      def total = workers * requests
    end
  end
end
