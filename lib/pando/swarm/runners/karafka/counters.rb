# frozen_string_literal: true

require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Karafka
        # Counts what Karafka reports to its monitor. Each mold has one, subscribed once and inherited by the nodes, and
        # each node resets it. Karafka's threads write; the node's main thread reads.
        #
        # A batch that begins, fails or is done is progress. In between, so are offsets marked as consumed, which
        # librdkafka's statistics report every few seconds. Polling is not progress: a listener goes on polling while a
        # consumer hangs.
        class Counters
          # @return [Integer] grows with each bit of work
          attr_reader :progress
          # @return [Integer] messages consumed since the start
          attr_reader :done
          # @return [Integer] batches that have raised
          attr_reader :failed

          def initialize
            start
          end

          def start
            @lock = Mutex.new
            @progress = @done = @failed = 0
            @lags = {} # id of a subscription group => messages
            @stored = {} # id of a subscription group => sum of the offsets marked as consumed
            @polled = {} # id of a subscription group => monotonic seconds
          end

          # @return [Integer, nil] messages that wait at the broker for this node; nil: not known yet
          def lag = @lags.empty? ? nil : @lags.values.sum

          # @return [Float] seconds since the last poll of the listener that has been silent longest
          def silent_for = Sys.now.then { |now| now - (@polled.values.min || now) }

          def on_consumer_consume(_event) = step

          def on_consumer_consumed(event)
            step { @done += event[:caller].messages.size }
            released(event[:caller])
          end

          def on_error_occurred(event)
            return unless event[:type] == "consumer.consume.error"

            step { @failed += 1 }
            released(event[:caller])
          end

          def on_connection_listener_fetch_loop(event) = polled(event[:subscription_group].id)

          # Karafka 2.5.0 does not report these polls. There, the statistics stand in for them while a consumer is
          # working.
          def on_client_events_poll(event) = polled(event[:subscription_group].id)

          def on_statistics_emitted(event)
            group = event[:subscription_group_id]
            partitions = partitions_in(event[:statistics])
            stored = partitions.sum { |one| [one["stored_offset"], 0].max }
            polled(group)
            step if stored > @stored.fetch(group, stored)
            @lock.synchronize do
              @stored = @stored.merge(group => stored)
              @lags = @lags.merge(group => partitions.sum { |one| lag_of(one) })
            end
          end

          private

          def step
            @lock.synchronize do
              yield if block_given?
              @progress += 1
            end
          end

          # The listener may have waited for this consumer, and can poll again.
          def released(consumer) = polled(consumer.topic.subscription_group.id)

          # The Hash is replaced, not changed: the main thread reads it without the lock.
          def polled(group)
            @lock.synchronize { @polled = @polled.merge(group => Sys.now) }
          end

          # The partitions that this node reads from; -1 is librdkafka's own.
          def partitions_in(statistics)
            statistics.fetch("topics", {}).values.flat_map { |topic| topic.fetch("partitions", {}).values }
                      .select { |one| one["partition"] != -1 && one["fetch_state"] != "none" }
          end

          # -1 means unknown: the stored lag is unknown until something is marked as consumed.
          def lag_of(partition)
            partition.values_at("consumer_lag_stored", "consumer_lag").find { |lag| !lag.negative? } || 0
          end
        end
      end
    end
  end
end
