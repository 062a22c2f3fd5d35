# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # Fisher's exact test, one-sided: how likely so many failures are among so many requests, or more, if they
      # fail no more often than the others. Right for any numbers, however small.
      #
      # @api private
      module ExactTest
        # @param failures [Integer] of `requests`
        # @param failures_before [Integer] of `requests_before`
        # @return [Float] 0..1; 1: nothing speaks against it
        def self.p(failures, requests, failures_before, requests_before)
          all = failures + failures_before
          last = [all, requests].min
          sum = (failures..last).sum do |count|
            next 0.0 if all - count > requests_before

            Math.exp(choose(requests, count) + choose(requests_before, all - count) -
                     choose(requests + requests_before, all))
          end
          [sum, 1.0].min
        end

        # The logarithm of how many ways there are.
        def self.choose(from, count)
          return 0.0 if count.zero? || count == from

          Math.lgamma(from + 1).first - Math.lgamma(count + 1).first - Math.lgamma(from - count + 1).first
        end
        private_class_method :choose
      end
    end
  end
end
