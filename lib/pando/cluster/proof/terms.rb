# frozen_string_literal: true

module Pando
  module Cluster
    module Proof
      # What a new generation must do before it replaces the old one.
      #
      #   requests  that its first worker serves
      #   seconds   that it serves at least
      #   longest   seconds after which what there is must do
      #
      # @api private
      Terms = Struct.new(:requests, :seconds, :longest, keyword_init: true)
    end
  end
end
