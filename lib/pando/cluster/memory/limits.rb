# frozen_string_literal: true

module Pando
  module Cluster
    module Memory
      # What workers may take, in bytes; nil: as much as they like.
      #
      #   worker     private memory after which a worker is replaced between two requests
      #   hard       private memory at which it is killed, in the middle of one
      #   total      memory of the whole tree, after which the fattest worker is replaced
      #   group      percent of the control group's limit that are in use, likewise
      #   pressure   percent of time that somebody waits for memory, likewise
      Limits = Struct.new(:worker, :hard, :total, :group, :pressure, keyword_init: true) do
        def any? = !to_h.compact.empty?
      end
    end
  end
end
