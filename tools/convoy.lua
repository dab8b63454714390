-- SPDX-License-Identifier: BSD-3-Clause
-- Copyright 2026 The Convoy authors
--
-- Wireshark's and tshark's dissector of convoys: docs/convoy-frame.md.
--
--   tshark -X lua_script:tools/convoy.lua -r FILE
--   mkdir -p ~/.local/lib/wireshark/plugins && cp tools/convoy.lua ~/.local/lib/wireshark/plugins/
--
-- The embedded packets are dissected as any Ethernet frame. What does not add up is an expert
-- message, with the name of the reason for which a node refuses the frame. Another UDP port than
-- 51966: -o convoy.port:N, or Preferences / Protocols / CONVOY.

local convoy = Proto("convoy", "Convoy")

local VERSION, ETHERNET, COMPRESSED, FRAGMENTS, LZ4 = 1, 0, 1, 2, 1
local HEADER, PREFIX, PACKET_MIN, COMPRESSION, CUT = 4, 2, 14, 8, 12
local DISSECTED = 64 -- packets of one frame; Wireshark takes 500 layers, the others stay bytes

convoy.prefs.port = Pref.uint("UDP port", 51966, "UDP destination port of convoys")

local types = { [ETHERNET] = "Ethernet", [COMPRESSED] = "Ethernet, compressed",
	[FRAGMENTS] = "Ethernet, some cut" }
local codecs = { [LZ4] = "LZ4" }
local fields = convoy.fields
fields.version = ProtoField.uint8("convoy.version", "Version", base.DEC, nil, 0xf0)
fields.type = ProtoField.uint8("convoy.type", "Type", base.DEC, types, 0x0f)
fields.count = ProtoField.uint8("convoy.count", "Packets")
fields.nfi = ProtoField.uint16("convoy.nfi", "NFI-ID")
fields.packet = ProtoField.bytes("convoy.packet", "Packet")
fields.length = ProtoField.uint16("convoy.packet.length", "Length")
fields.codec = ProtoField.uint8("convoy.codec", "Codec", base.DEC, codecs)
fields.reserved = ProtoField.uint8("convoy.reserved", "Reserved")
fields.bytes = ProtoField.uint16("convoy.bytes", "Bytes when expanded")
fields.dictionary = ProtoField.uint32("convoy.dictionary", "Dictionary", base.HEX)
fields.block = ProtoField.bytes("convoy.block", "Compressed packets")
fields.stream = ProtoField.uint32("convoy.stream", "Stream", base.HEX)
fields.sequence = ProtoField.uint32("convoy.sequence", "Number of the frame")
fields.flags = ProtoField.uint16("convoy.flags", "The first packet is a rest", base.HEX)
fields.total = ProtoField.uint16("convoy.total", "Bytes of the packet that begins")
fields.rest = ProtoField.bytes("convoy.rest", "Rest of the packet before")
fields.beginning = ProtoField.bytes("convoy.beginning", "Beginning of a packet")
fields.trailing = ProtoField.bytes("convoy.trailing", "Bytes behind the last packet")
fields.reason = ProtoField.string("convoy.reason", "Refused")

local refused = ProtoExpert.new("convoy.refused", "A node refuses this frame", expert.group.MALFORMED,
	expert.severity.ERROR)
convoy.experts = { refused }

local ethernet = Dissector.get("eth_withoutfcs")

-- Says at an item why the frame is refused.
local function refuse(tree, range, reason)
	local item = tree:add(fields.reason, range, reason)
	item:set_generated()
	item:add_proto_expert_info(refused, reason)
end

-- A packet inside of a convoy is never one itself, whatever it looks like: a receiver disaggregates once.
local inside = false

-- One packet below its own item; the outer packet's columns stay as they are. An embedded packet
-- that its dissector cannot read does not end the walk.
local function embedded(tvb, pinfo, tree, at, length, number)
	local item = tree:add(fields.packet, tvb(at, PREFIX + length))
	item:set_text(string.format("Packet %d, %d bytes", number, length))
	item:add(fields.length, tvb(at, PREFIX))
	if number <= DISSECTED then
		inside = true
		pcall(ethernet.call, ethernet, tvb(at + PREFIX, length):tvb(), pinfo, item)
		inside = false
	end
end

-- A compressed frame: its packets stay compressed, for the dictionary is the receiver's.
local function compressed(tvb, pinfo, tree, size)
	local count, nfi = tvb(1, 1):uint(), tvb(2, 2):uint()
	if size < HEADER + COMPRESSION then
		refuse(tree, tvb(HEADER), "bad_length")
		return
	end
	tree:add(fields.codec, tvb(HEADER, 1))
	tree:add(fields.reserved, tvb(HEADER + 1, 1))
	tree:add(fields.bytes, tvb(HEADER + 2, 2))
	tree:add(fields.dictionary, tvb(HEADER + 4, 4))
	if tvb(HEADER, 1):uint() ~= LZ4 or tvb(HEADER + 1, 1):uint() ~= 0 then
		refuse(tree, tvb(HEADER, 2), "bad_codec")
		return
	elseif tvb(HEADER + 2, 2):uint() < PREFIX then
		refuse(tree, tvb(HEADER + 2, 2), "bad_length")
		return
	elseif size == HEADER + COMPRESSION then
		refuse(tree, tvb(HEADER, COMPRESSION), "bad_block")
		return
	end
	tree:add(fields.block, tvb(HEADER + COMPRESSION, size - HEADER - COMPRESSION))
	pinfo.cols.protocol = "CONVOY"
	pinfo.cols.info = string.format("Convoy of %d to NFI-ID %d, compressed", count, nfi)
end

local bound = convoy.prefs.port

function convoy.dissector(tvb, pinfo, root)
	-- The table of ports is asked for source ports too.
	if inside or pinfo.dst_port ~= bound then
		return 0
	end
	local size = tvb:reported_length_remaining()
	local tree = root:add(convoy, tvb())
	if size < HEADER then
		refuse(tree, tvb(), "bad_length")
		return
	end
	if tvb:captured_len() < size then
		tree:append_text(", cut by the capture")
		size = tvb:captured_len()
		if size < HEADER then
			return
		end
	end

	local count = tvb(1, 1):uint()
	tree:append_text(string.format(", %d packets to NFI-ID %d", count, tvb(2, 2):uint()))
	tree:add(fields.version, tvb(0, 1))
	tree:add(fields.type, tvb(0, 1))
	tree:add(fields.count, tvb(1, 1))
	tree:add(fields.nfi, tvb(2, 2))
	if tvb(0, 1):bitfield(0, 4) ~= VERSION then
		refuse(tree, tvb(0, 1), "bad_version")
		return
	elseif tvb(0, 1):bitfield(4, 4) > FRAGMENTS then
		refuse(tree, tvb(0, 1), "bad_type")
		return
	elseif count == 0 and tvb(0, 1):bitfield(4, 4) ~= FRAGMENTS then
		refuse(tree, tvb(1, 1), "bad_count")
		return
	elseif tvb(0, 1):bitfield(4, 4) == COMPRESSED then
		compressed(tvb, pinfo, tree, size)
		return
	end

	-- The whole frame first: of one that is refused, nothing is shown as a packet.
	local at, starts = HEADER, {}
	local rest, total = false, 0
	if tvb(0, 1):bitfield(4, 4) == FRAGMENTS then
		if size < HEADER + CUT then
			refuse(tree, tvb(HEADER), "bad_length")
			return
		end
		tree:add(fields.stream, tvb(4, 4))
		tree:add(fields.sequence, tvb(8, 4))
		tree:add(fields.flags, tvb(12, 2))
		tree:add(fields.total, tvb(14, 2))
		rest, total = tvb(12, 2):uint() == 1, tvb(14, 2):uint()
		if (not rest and (tvb(12, 2):uint() ~= 0 or total == 0)) or (rest and count == 0) then
			refuse(tree, tvb(12, 4), "bad_fragment")
			return
		end
		at = HEADER + CUT
	end
	for number = 1, count do
		if size - at < PREFIX then
			refuse(tree, tvb(1, 1), "bad_count")
			return
		end
		local length = tvb(at, PREFIX):uint()
		if length < ((rest and number == 1) and 1 or PACKET_MIN) then
			refuse(tree, tvb(at, PREFIX), "runt_packet")
			return
		elseif length > size - at - PREFIX then
			refuse(tree, tvb(at, PREFIX), "bad_length")
			return
		end
		starts[number] = at
		at = at + PREFIX + length
	end
	if total > 0 and total < PACKET_MIN then
		refuse(tree, tvb(14, 2), "runt_packet")
		return
	elseif total > 0 and (at == size or size - at >= total) then
		refuse(tree, tvb(14, 2), "bad_fragment")
		return
	elseif total > 0 then
		tree:add(fields.beginning, tvb(at, size - at))
	elseif at < size then
		tree:add(fields.trailing, tvb(at, size - at))
		refuse(tree, tvb(at, size - at), "trailing_bytes")
		return
	end

	local columns = string.format("Convoy of %d to NFI-ID %d", count, tvb(2, 2):uint())
	for number, start in ipairs(starts) do
		if rest and number == 1 then
			tree:add(fields.rest, tvb(start + PREFIX, tvb(start, PREFIX):uint()))
		else
			embedded(tvb, pinfo, tree, start, tvb(start, PREFIX):uint(), number)
		end
	end
	if rest or total > 0 then
		columns = columns .. ", some cut"
	end
	pinfo.cols.protocol = "CONVOY"
	pinfo.cols.info = columns
end

local udp = DissectorTable.get("udp.port")
udp:add(bound, convoy)
function convoy.prefs_changed()
	udp:remove(bound, convoy)
	bound = convoy.prefs.port
	udp:add(bound, convoy)
end
