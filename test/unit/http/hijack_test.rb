# frozen_string_literal: true

require "test_helper"
require_relative "support/each_mode"

# Full hijack: the application takes the connection instead of answering.
class HTTPHijackTest < Minitest::Test
  extend HTTPSupport::EachMode

  # Hands the socket to the test, and answers what is ignored.
  def hijacking(**settings)
    taken = Queue.new
    serve(**settings) do |env|
      env["PATH_INFO"] == "/ask" ? [200, {}, ["answer"]] : (taken << env["rack.hijack"].call) && [-1, {}, ["ignored"]]
    end
    taken
  end

  in_each_mode "the_application_has_the_socket_and_the_worker_serves_on" do
    taken = hijacking
    client = request
    socket = taken.pop

    assert_equal "HTTP/1.1 200 OK\r\n\r\nanswer", ask.sub(/\r\n.*\r\n\r\n/m, "\r\n\r\n")
    socket.write("raw")
    client.write("back")

    assert_equal "back", socket.readpartial(100)
    socket.close
    assert_equal "raw", all_of(client)
  end

  in_each_mode "it_is_a_socket_as_applications_know_them" do
    taken = hijacking
    client = request
    socket = taken.pop

    assert_instance_of TCPSocket, socket
    assert_equal client.local_address.ip_port, socket.remote_address.ip_port
    assert socket.sync
    assert socket.close_on_exec?
    assert_equal :wait_readable, socket.read_nonblock(1, exception: false)
    socket.setsockopt(:TCP, :NODELAY, true)
    socket.close
  end

  in_each_mode "of_a_client_on_a_unix_socket" do
    Dir.mktmpdir do |dir|
      taken = Queue.new
      serve(->(env) { (taken << env["rack.hijack"].call) && [200, {}, []] }, unix: "#{dir}/socket")
      client = request
      socket = taken.pop
      socket.write("raw")
      socket.close

      assert_instance_of UNIXSocket, socket
      assert_equal "raw", all_of(client)
    end
  end

  in_each_mode "what_the_client_sent_ahead_is_read_first" do
    taken = hijacking
    requests = { "GET" => ["", "", "ahead"], "POST" => ["Content-Length: 3\r\n", "abc", "ahead"],
                 "PUT" => ["Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", "a" * 10_000] }
    requests.each do |verb, (fields, body, ahead)|
      client = request(fields, verb: verb, behind: body + ahead)
      socket = taken.pop
      assert_equal [[socket], [], []], IO.select([socket], nil, nil, 20)
      read = +""
      read << socket.readpartial(100_000) while read.bytesize < ahead.bytesize
      client.write("more")

      assert_equal [ahead, "more"], [read, socket.readpartial(100)], verb
      socket.close
    end
  end

  in_each_mode "the_body_is_in_the_input_as_ever" do
    seen = Queue.new
    serve { |env| (seen << env["rack.input"].read) && env["rack.hijack"].call.close }
    request("Content-Length: 50000\r\n", verb: "POST", behind: "b" * 50_000)

    assert_equal "b" * 50_000, seen.pop
  end

  in_each_mode "the_same_again_and_under_the_name_of_rack_2" do
    seen = Queue.new
    serve do |env|
      one = env["rack.hijack"].call
      seen << [one, env["rack.hijack"].call, env["rack.hijack_io"], env["rack.hijack?"]]
      [200, {}, []]
    end
    request
    one, again, named, possible = seen.pop

    assert_same one, again
    assert_same one, named
    assert possible
    one.close
  end

  in_each_mode "the_body_of_the_ignored_answer_is_closed" do
    closed = Queue.new
    body = Object.new
    body.define_singleton_method(:each) { raise "never asked" }
    body.define_singleton_method(:close) { closed << true }
    events = events_of do
      serve { |env| env["rack.hijack"].call.close || [200, {}, body] }
      request
      assert closed.pop
      wait_for_jobs(1)
    end

    assert_empty events
  end

  in_each_mode "an_exception_afterwards_is_reported_and_answers_nothing" do
    events = events_of do
      serve do |env|
        env["rack.hijack"].call.write("raw")
        raise "boom"
      end
      client = request
      wait_for_jobs(1)
      GC.start # dropping the socket closes it
      @served.stop
      @served = nil
      client.close_write
      assert_equal "raw", client.readpartial(1000)
    end

    assert_equal(%w[boom], events.map { |event| event[:error].message })
  end

  in_each_mode "not_when_the_answer_has_begun" do
    seen = Queue.new
    serve do |env|
      [200, {}, Enumerator.new do |out|
        out << "one"
        seen << assert_raises(IOError) { env["rack.hijack"].call }
        out << "two"
      end]
    end

    assert_includes all_of(request("Connection: close\r\n")), "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    assert_match(/the response has begun/, seen.pop.message)
  end

  in_each_mode "not_when_the_request_is_over" do
    kept = []
    serve { |env| kept.push(env["rack.hijack"]) && [200, {}, ["answer"]] }
    ask
    wait_for_jobs(1)
    assert_raises(IOError) { kept.first.call }

    assert_includes ask, "answer"
    refute_predicate kept.first, :connected?
  end

  in_each_mode "the_callbacks_and_the_hook_run" do
    told = Queue.new
    serve do |env|
      env["rack.response_finished"] << ->(_env, status, *) { told << status }
      env["rack.hijack"].call.close
      [200, {}, []]
    end
    @served.worker.hooks[:after_request_complete] = ->(_env) { told << :hook }
    request

    assert_equal [200, :hook], [told.pop, told.pop]
  end

  in_each_mode "forked_children_are_cut_off" do
    taken = hijacking
    client = request
    socket = taken.pop
    go, said = IO.pipe
    pid = fork do
      Pando::ForkSafety.after_fork
      said.close
      go.read
      exit!(socket.read.empty? ? 0 : 1)
    end
    go.close
    socket.close

    assert_equal "", all_of(client), "the child holds the client's connection"
    said.close
    assert_predicate Process.wait2(pid).last, :success?
  end

  in_each_mode "no_descriptor_is_left_behind" do
    taken = hijacking
    hijack = lambda do
      client = request(behind: "ahead")
      taken.pop.close
      client.close
    end
    2.times { hijack.call }
    before = Dir.children("/proc/self/fd").size
    5.times { hijack.call }
    wait_for_jobs(7)

    assert_operator Dir.children("/proc/self/fd").size, :<=, before
  end
end
