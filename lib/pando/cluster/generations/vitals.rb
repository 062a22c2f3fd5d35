# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # How it stands with the generation that serves, at one look: plain figures, for a policy that decides by them.
      #
      #   generation  its number, or that of the one whose mold it has replaced
      #   reforks     since the last mold that booted from cold; 0: it is that one's
      #   seconds     since it serves in all slots
      #   workers     how many
      #   age         requests that a worker has served since its fork, on average
      #   most        that the one has served who has served most
      #   warmed      how many workers as warm as that one the others and it make together, by the logarithm of requests
      #   pss         bytes of its workers, and of a mold that stays, what they share counted once; nil: not known yet
      #   private     bytes of that which one process has for itself
      #   cpu         seconds of CPU that a worker has had since its fork, on average, with its part of what the mold
      #               has had since it was promoted
      Vitals = Struct.new(:generation, :reforks, :seconds, :workers, :age, :most, :warmed, :pss, :private, :cpu,
                          keyword_init: true)
    end
  end
end
