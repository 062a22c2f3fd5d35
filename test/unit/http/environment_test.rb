# frozen_string_literal: true

require "test_helper"
require "pando/http"
require "support/small_process"

class HTTPEnvironmentTest < Minitest::Test
  include Support::SmallProcess

  REMOTE = "192.0.2.1"

  def setup
    @listener = Socket.new(:INET, :STREAM)
    @listener.bind(Addrinfo.tcp("127.0.0.1", 0))
  end

  def teardown
    @listener.close
  end

  def build(head, rack: [3, 1], remote: REMOTE, listener: @listener, **options)
    parser = Pando::HTTP::Parser.new(8192, 512, 50)
    assert_equal true, parser.run(head), parser.reason
    Pando::HTTP::Environment.new(listener, rack: rack, **options).build(parser, head, remote)
  end

  def with_fields(*fields, **options)
    build("GET / HTTP/1.1\r\nHost: a\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n", **options)
  end

  def test_a_whole_environment
    env = build("POST /a?b=c HTTP/1.1\r\nHost: example.com:81\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n" \
                "Accept: */*\r\nX-Unheard-Of: d\r\n\r\n")

    assert_equal(
      { "SCRIPT_NAME" => "", "SERVER_NAME" => "example.com", "SERVER_PORT" => "81",
        "SERVER_SOFTWARE" => "pando/#{Pando::VERSION}", "rack.url_scheme" => "http", "rack.errors" => $stderr,
        "rack.input" => Pando::HTTP::NoBody::NONE, "rack.hijack?" => true, "REQUEST_METHOD" => "POST",
        "REQUEST_URI" => "/a?b=c", "PATH_INFO" => "/a", "QUERY_STRING" => "b=c", "SERVER_PROTOCOL" => "HTTP/1.1",
        "HTTP_HOST" => "example.com:81", "CONTENT_LENGTH" => "3", "CONTENT_TYPE" => "text/plain",
        "HTTP_ACCEPT" => "*/*", "HTTP_X_UNHEARD_OF" => "d", "REMOTE_ADDR" => "192.0.2.1",
        "rack.response_finished" => [], "rack.after_reply" => [] }, env
    )
  end

  def test_rack_2_wants_more
    env = with_fields("Version: x", rack: [2, 2])

    assert_equal [[1, 3], false, true, false], env.values_at("rack.version", "rack.multithread", "rack.multiprocess",
                                                             "rack.run_once")
    assert_equal "HTTP/1.1", env["HTTP_VERSION"]
    refute_includes env, "rack.response_finished"
    assert_equal [], env["rack.after_reply"]
  end

  def test_rack_2_is_told_of_threads
    assert with_fields("Version: x", rack: [2, 2], multithread: true).fetch("rack.multithread")
  end

  def test_each_request_has_its_own
    environment = Pando::HTTP::Environment.new(@listener)
    parser = Pando::HTTP::Parser.new(8192, 512, 50)
    head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    parser.run(head)
    one, two = Array.new(2) { environment.build(parser, head, REMOTE) }
    one["x.y"] = 1
    lists = %w[rack.response_finished rack.after_reply]
    lists.each { |key| one[key] << 1 }

    refute_includes two, "x.y"
    assert_equal [[], []], two.values_at(*lists)
  end

  def test_repeated_fields_are_a_list
    assert_equal "a, b, c", with_fields("X: a", "x: b", "X: c")["HTTP_X"]
    assert_equal "a=1; b=2", with_fields("Cookie: a=1", "Cookie: b=2")["HTTP_COOKIE"]
    assert_equal "a, b", with_fields("Content-Type: a", "content-type: b")["CONTENT_TYPE"]
  end

  def test_a_name_with_an_underscore_cannot_pose_as_another
    env = with_fields("X_Forwarded_For: evil", "X-Forwarded-For: good", "Content_Length: 5", "content_type: x",
                      "_: x", "X-A_B: c")

    assert_equal "good", env["HTTP_X_FORWARDED_FOR"]
    assert_empty env.keys & %w[CONTENT_LENGTH CONTENT_TYPE HTTP_CONTENT_LENGTH HTTP_CONTENT_TYPE HTTP__ HTTP_X_A_B]
  end

  def test_names_of_every_length_become_keys
    [1, 100, 123, 124, 500].each { |size| assert_equal "v", with_fields("#{"a" * size}: v")["HTTP_#{"A" * size}"] }
    assert_equal "v", with_fields("X!#$%&'*+.^`|~-9: v")["HTTP_X!#$%&'*+.^`|~_9"]
  end

  def test_keys_are_frozen_and_the_very_objects_of_literals
    env = with_fields("X-Unheard-Of: d", "Accept: x")

    env.each_key { |key| assert_predicate key, :frozen?, key }
    assert_same("HTTP_X_UNHEARD_OF", env.keys.find { |key| key == "HTTP_X_UNHEARD_OF" })
    assert_same("HTTP_ACCEPT", env.keys.find { |key| key == "HTTP_ACCEPT" })
  end

  def test_values_are_the_requests_own_and_binary
    env = with_fields("X: \xC3\xA4".b)
    %w[HTTP_X PATH_INFO QUERY_STRING HTTP_HOST REQUEST_URI].each do |key|
      refute_predicate env[key], :frozen?, key
      assert_equal Encoding::BINARY, env[key].encoding, key
    end
  end

  def test_options_asterisk_in_each_rack
    head = "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"

    assert_equal(["*", "", ""], [[3, 1], [3, 0], [2, 2]].map { |rack| build(head, rack: rack)["PATH_INFO"] })
  end

  def test_the_listener_names_the_server_when_the_request_does_not
    env = build("GET / HTTP/1.0\r\n\r\n")

    assert_equal ["127.0.0.1", @listener.local_address.ip_port.to_s], env.values_at("SERVER_NAME", "SERVER_PORT")
  end

  def test_the_client
    assert_equal "192.0.2.9", with_fields(remote: "192.0.2.9")["REMOTE_ADDR"]
    assert_equal "127.0.0.1", with_fields(remote: nil)["REMOTE_ADDR"], "on a UNIX socket"
  end

  def test_what_trusted_proxies_say
    proxies = Pando::HTTP::TrustedProxies.new(%w[192.0.2.0/24])
    fields = ["X-Forwarded-For: 198.51.100.7", "X-Forwarded-Proto: https"]
    trusted, other = [REMOTE, "203.0.113.1"].map { |remote| with_fields(*fields, remote: remote, proxies: proxies) }
    seen = %w[REMOTE_ADDR rack.url_scheme SERVER_PORT HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_PROTO]

    assert_equal %w[198.51.100.7 https 443 198.51.100.7 https], trusted.values_at(*seen)
    assert_equal %w[203.0.113.1 http 80 198.51.100.7 https], other.values_at(*seen)
  end

  def test_a_unix_listener_is_localhost
    Dir.mktmpdir do |dir|
      UNIXServer.open("#{dir}/s") do |listener|
        env = build("GET / HTTP/1.0\r\n\r\n", listener: listener)

        assert_equal %w[localhost 80], env.values_at("SERVER_NAME", "SERVER_PORT")
      end
    end
  end

  def test_a_v6_listener_stands_in_brackets
    Socket.open(:INET6, :STREAM) do |listener|
      listener.bind(Addrinfo.tcp("::1", 0))

      assert_equal "[::1]", build("GET / HTTP/1.0\r\n\r\n", listener: listener)["SERVER_NAME"]
    end
  rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
    skip "no IPv6 here"
  end

  def test_it_survives_a_compaction_at_each_allocation
    GC.respond_to?(:auto_compact=) || skip("this Ruby has no GC compaction")
    assert_in_small_process(<<~'RUBY')
      require "pando/http"
      head = "GET / HTTP/1.1\r\nHost: a\r\nX-Y: #{"d" * 200}\r\nX-Y: e\r\n\r\n"
      remote = "REMOTE"
      parser = Pando::HTTP::Parser.new(8192, 512, 50)
      parser.run(head)
      GC.stress = true
      GC.auto_compact = true
      env = parser.environment({}, head, remote, "*")
      GC.auto_compact = GC.stress = false
      found = env.values_at("PATH_INFO", "HTTP_HOST", "HTTP_X_Y")
      found == ["/", "a", "#{"d" * 200}, e"] || abort("it is #{found}")
    RUBY
  end
end
