# frozen_string_literal: true

require "test_helper"
require_relative "support/each_mode"

# env["rack.after_reply"], which libraries know from Puma.
class HTTPAfterReplyTest < Minitest::Test
  extend HTTPSupport::EachMode

  in_each_mode "both_ways_of_adding_a_callback_run_it_after_the_response" do
    gate = Queue.new
    told = Queue.new
    serve do |env|
      env["rack.after_reply"] << ->(*arguments) { gate.pop && (told << [:first, *arguments]) }
      (env["rack.after_reply"] ||= []) << ->(*arguments) { told << [:second, *arguments] }
      [200, {}, ["answer"]]
    end

    assert_match(/answer\z/, all_of(request("Connection: close\r\n")))
    assert_empty told
    gate << true
    wait_for_jobs(1)
    assert_equal [[:first], [:second]], Array.new(told.size) { told.pop }
  end

  in_each_mode "a_callback_that_raises_does_not_stop_the_next" do
    told = Queue.new
    serve do |env|
      env["rack.after_reply"] << -> { raise "boom" } << -> { raise NotImplementedError } << -> { told << :called }
      raise "failed" if env["PATH_INFO"] == "/fail"

      [200, {}, []]
    end
    events = events_of { 2.times { |number| ask("/") && wait_for_jobs(number + 1) } }

    assert_equal([RuntimeError, NotImplementedError] * 2, events.map { |event| event[:error].class })
    assert_equal %i[called called], Array.new(told.size) { told.pop }
    events_of { assert_match(/ 500 /, ask("/fail")) && wait_for_jobs(3) }
    assert_equal [:called], Array.new(told.size) { told.pop }
  end

  in_each_mode "the_callbacks_of_rack_3_run_first" do
    told = Queue.new
    serve do |env|
      env["rack.after_reply"] = [-> { told << :after_reply }]
      env["rack.response_finished"] << ->(*) { told << :response_finished }
      [200, {}, []]
    end
    ask
    wait_for_jobs(1)

    assert_equal %i[response_finished after_reply], Array.new(told.size) { told.pop }
  end

  in_each_mode "an_application_may_take_the_list_away" do
    serve { |env| env.delete("rack.after_reply") && [200, {}, []] }

    assert_empty(events_of { ask && wait_for_jobs(1) })
  end
end
