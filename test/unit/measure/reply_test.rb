# frozen_string_literal: true

require "test_helper"
require "pando/measure/reply"

# Where an answer ends.
class MeasureReplyTest < Minitest::Test
  Reply = Pando::Measure::Reply

  def test_a_body_of_known_length_in_whatever_pieces_it_comes
    whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
    replies = [whole.chars, [whole], [whole[0, 30], whole[30..]]].map { |pieces| read(*pieces) }

    replies.each { |reply| assert_equal([200, true, true, "y"], [reply.status, reply.done?, reply.keep?, reply["x"]]) }
    refute_predicate(read(whole.chop), :done?)
  end

  def test_chunks_with_extensions_and_trailers
    whole = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n" \
            "5;a=b\r\nhello\r\n10\r\n#{"x" * 16}\r\n0\r\nA: b\r\n\r\n"

    [whole.chars, [whole]].each { |pieces| assert_predicate(read(*pieces), :keep?) }
    refute_predicate(read(whole.delete_suffix("\r\n")), :done?)
  end

  def test_what_has_no_body
    head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"

    assert_predicate(read(head, verb: "HEAD"), :keep?)
    [204, 304].each { |status| assert_predicate(read("HTTP/1.1 #{status} x\r\n\r\n"), :keep?) }
  end

  def test_an_early_hint_is_not_the_answer
    reply = read("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    assert_equal([404, true], [reply.status, reply.done?])
  end

  def test_a_body_that_ends_with_the_connection
    reply = read("HTTP/1.1 200 OK\r\n\r\nhello")
    refute_predicate(reply, :done?)

    assert_equal([true, false], [reply.close.done?, reply.keep?])
    refute_predicate(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel").close, :done?)
  end

  def test_connections_that_are_not_kept
    refute_predicate(read("HTTP/1.1 204 x\r\nConnection: Close\r\n\r\n"), :keep?)
    refute_predicate(read("HTTP/1.0 204 x\r\n\r\n"), :keep?)
    assert_predicate(read("HTTP/1.0 204 x\r\nConnection: keep-alive\r\n\r\n"), :keep?)
  end

  def test_what_is_no_answer
    ["SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"].each do |bytes|
      assert_raises(Reply::Malformed) { read(bytes) }
    end
  end

  private

  def read(*pieces, verb: "GET") = Reply.new(verb).tap { |reply| pieces.each { |piece| reply << piece } }
end
